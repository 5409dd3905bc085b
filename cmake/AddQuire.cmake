# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Thin wrappers around AddMLIR: how a dialect, a library, a pass table and a tool of this project are declared.

# Code that includes MLIR headers: LLVM's own rules (no exceptions, no RTTI), our warnings, a precompiled header.
# WITH_ONNX: that of code which is mostly about operations of `onnx`.
function(quire_compiler_target target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti -Wall -Wextra -Wno-unused-parameter)
  if(QUIRE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(QUIRE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${QUIRE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${QUIRE_SANITIZE})
  endif()
  cmake_parse_arguments(arg "UNOPTIMISED;WITH_ONNX" "" "" ${ARGN})
  if(arg_UNOPTIMISED)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(target STREQUAL "QuirePrecompiledONNX")
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib/PrecompiledONNX.h)
  elseif(target MATCHES "^QuirePrecompiled")
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib/Precompiled.h)
  elseif(arg_UNOPTIMISED)
    target_precompile_headers(${target} REUSE_FROM QuirePrecompiledUnoptimised)
  elseif(arg_WITH_ONNX)
    target_precompile_headers(${target} REUSE_FROM QuirePrecompiledONNX)
  else()
    target_precompile_headers(${target} REUSE_FROM QuirePrecompiled)
  endif()
endfunction()

# quire_tablegen(BASE TD_FILE [EXTRA generator=output ...]): runs mlir-tblgen; outputs land beside the source's path in the build folder.
# quire_add_dialect(NAME dialect TD...): op, type, attribute and enum declarations of one dialect, included as
# "dialects/<Dir>/<NAME>....inc". Every .td that DEFINES something is included by <NAME>Ops.td.
function(quire_add_dialect name dialect)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  set(flags -I ${PROJECT_SOURCE_DIR})
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${dialect} ${flags})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect} ${flags})
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls -dialect=${dialect} ${flags})
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs -dialect=${dialect} ${flags})
  mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect} ${flags})
  mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect} ${flags})
  mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect} ${flags})
  mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect} ${flags})
  mlir_tablegen(${name}Enums.h.inc -gen-enum-decls ${flags})
  mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs ${flags})
  add_public_tablegen_target(Quire${name}IncGen)
  add_dependencies(quire-headers Quire${name}IncGen)
endfunction()

# quire_add_op_family(TD): the operation classes that TD.td and its includes define, for a dialect split over several files.
function(quire_add_op_family td)
  set(LLVM_TARGET_DEFINITIONS ${td}Ops.td)
  mlir_tablegen(${td}Ops.h.inc -gen-op-decls -I ${PROJECT_SOURCE_DIR})
  mlir_tablegen(${td}Ops.cpp.inc -gen-op-defs -I ${PROJECT_SOURCE_DIR})
  add_public_tablegen_target(Quire${td}OpsIncGen)
  add_dependencies(quire-headers Quire${td}OpsIncGen)
endfunction()

# quire_add_interface(TD [op|attr|type]): declarations and definitions of the interfaces in TD.td.
function(quire_add_interface td kind)
  set(LLVM_TARGET_DEFINITIONS ${td}.td)
  mlir_tablegen(${td}.h.inc -gen-${kind}-interface-decls -I ${PROJECT_SOURCE_DIR})
  mlir_tablegen(${td}.cpp.inc -gen-${kind}-interface-defs -I ${PROJECT_SOURCE_DIR})
  add_public_tablegen_target(Quire${td}IncGen)
  add_dependencies(quire-headers Quire${td}IncGen)
endfunction()

# quire_add_passes(NAME): pass declarations of Passes.td in this folder, as "lib/<Dir>/Passes.h.inc"; group NAME.
function(quire_add_passes name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=${name} -I ${PROJECT_SOURCE_DIR})
  add_public_tablegen_target(Quire${name}PassesIncGen)
  add_dependencies(quire-headers Quire${name}PassesIncGen)
endfunction()

# quire_add_library(NAME sources... LINK libraries... [UNOPTIMISED] [WITH_ONNX] [FOR_TESTS]): one directory, one library. All generated
# headers exist before it compiles. UNOPTIMISED is for generated code that is large and not hot: it halves the time to build it. What
# is FOR_TESTS is not installed.
function(quire_add_library name)
  cmake_parse_arguments(arg "UNOPTIMISED;WITH_ONNX;FOR_TESTS" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  quire_compiler_target(${name} ${ARGN})
  add_dependencies(${name} quire-headers)
  target_link_libraries(${name} PUBLIC ${arg_LINK} MLIR LLVM)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT arg_FOR_TESTS)
    install(TARGETS ${name} EXPORT QuireCompiler ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endif()
endfunction()

# An executable shares the libraries' precompiled header, which is compiled as PIC and not as PIE.
function(quire_executable target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

# quire_add_tool(NAME sources... LINK libraries...): an executable in build/bin.
function(quire_add_tool name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  quire_compiler_target(${name})
  quire_executable(${name})
  add_dependencies(${name} quire-headers)
  target_link_libraries(${name} PRIVATE ${arg_LINK} MLIR LLVM)
endfunction()

# quire_add_unit_test(NAME sources... LINK libraries... [WITH_ONNX]): a GoogleTest program in build/unit, run by ctest.
function(quire_add_unit_test name)
  cmake_parse_arguments(arg "WITH_ONNX" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  quire_compiler_target(${name} ${ARGN})
  quire_executable(${name})
  add_dependencies(${name} quire-headers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest_main MLIR LLVM)
  add_dependencies(quire-unit-tests ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120)
endfunction()

if(NOT TARGET quire-headers)
  add_custom_target(quire-headers)
  add_custom_target(quire-unit-tests)
endif()

if(NOT TARGET QuirePrecompiled)
  add_library(QuirePrecompiled OBJECT ${PROJECT_SOURCE_DIR}/lib/Precompiled.cpp)
  quire_compiler_target(QuirePrecompiled)
  add_library(QuirePrecompiledUnoptimised OBJECT ${PROJECT_SOURCE_DIR}/lib/Precompiled.cpp)
  quire_compiler_target(QuirePrecompiledUnoptimised UNOPTIMISED)
  add_library(QuirePrecompiledONNX OBJECT ${PROJECT_SOURCE_DIR}/lib/Precompiled.cpp)
  quire_compiler_target(QuirePrecompiledONNX)
  add_dependencies(QuirePrecompiledONNX quire-headers)
endif()
