# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cmake --install` gives: tools, plugin, public headers, libraries, and the package that find_package(Quire) finds.
include(CMakePackageConfigHelpers)
set(QUIRE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Quire)

foreach(tool quirec quire-opt)
  if(TARGET ${tool})
    install(TARGETS ${tool} EXPORT QuireTools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  endif()
endforeach()
install(DIRECTORY include/quire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)

# Three export sets: programs; the runtime, which needs nothing of LLVM; and the compiler as libraries.
install(EXPORT QuireTools NAMESPACE Quire:: DESTINATION ${QUIRE_PACKAGE_DIR} COMPONENT tools)
install(EXPORT QuireTargets NAMESPACE Quire:: DESTINATION ${QUIRE_PACKAGE_DIR} COMPONENT runtime)
install(EXPORT QuireCompiler NAMESPACE Quire:: DESTINATION ${QUIRE_PACKAGE_DIR} COMPONENT development)

configure_package_config_file(cmake/QuireConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/QuireConfig.cmake INSTALL_DESTINATION ${QUIRE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/QuireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/QuireConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/QuireConfigVersion.cmake
        DESTINATION ${QUIRE_PACKAGE_DIR} COMPONENT runtime)
