// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: attention, rotary embedding and recurrent token mixers.

#ifndef QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_AttentionOp : ONNX_Op<"Attention", 25, [Pure]> {
  let summary = "scaled dot product attention, with optional past and mask";
  let description = [{
    Heads come as [batch, heads, length, size], or flat as [batch, length, heads * size] with the head counts as
    attributes. A past K and V is put in front of the new ones and given back as present. Queries may have more
    heads than keys; then neighbouring query heads share one key head.
  }];
  let arguments = (ins ONNX_Value:$Q, ONNX_Value:$K, ONNX_Value:$V, ONNX_Optional:$attn_mask,
        ONNX_Optional:$past_key, ONNX_Optional:$past_value, ONNX_Optional:$nonpad_kv_seqlen,
        ONNX_IntOr<"0">:$is_causal, OptionalAttr<ONNX_Int>:$kv_num_heads, ONNX_IntOr<"-1">:$left_window_size,
        OptionalAttr<ONNX_Int>:$q_num_heads, ONNX_IntOr<"0">:$qk_matmul_output_mode,
        ONNX_IntOr<"-1">:$right_window_size, OptionalAttr<ONNX_Float>:$scale, ONNX_FloatOr<"0.0f">:$softcap,
        OptionalAttr<TypeAttr>:$softmax_precision);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$present_key, ONNX_Optional:$present_value,
        ONNX_Optional:$qk_matmul_output);
  let hasVerifier = 1;
}

def ONNX_RotaryEmbeddingOp : ONNX_Op<"RotaryEmbedding", 23, [Pure]> {
  let summary = "rotates pairs of features by the angle of their position";
  let description = [{
    Each pair of features is turned by an angle that depends on the row's position. The cosine and sine tables are
    indexed by `position_ids`, or already hold one row per token when there are none. `interleaved` pairs
    neighbours; otherwise feature i goes with feature i + half.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$cos_cache, ONNX_Value:$sin_cache, ONNX_Optional:$position_ids,
        ONNX_IntOr<"0">:$interleaved, OptionalAttr<ONNX_Int>:$num_heads, ONNX_IntOr<"0">:$rotary_embedding_dim);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_LinearAttentionOp : ONNX_Op<"LinearAttention", 27, [Pure]> {
  let summary = "linear attention with a recurrent state";
  let description = [{
    The state is a matrix per head which every token updates by `update_rule`, with optional decay and learning
    rate; the output reads it with the query. The state before and after the call is explicit.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Value:$key, ONNX_Value:$value, ONNX_Optional:$past_state,
        ONNX_Optional:$decay, ONNX_Optional:$beta, ONNX_Int:$kv_num_heads, ONNX_Int:$q_num_heads,
        ONNX_IntOr<"64">:$chunk_size, ONNX_FloatOr<"0.0f">:$scale, ONNX_StrOr<"gated_delta">:$update_rule);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present_state);
  let hasVerifier = 1;
}

def ONNX_CausalConvWithStateOp : ONNX_Op<"CausalConvWithState", 27, [Pure]> {
  let summary = "causal depthwise convolution that carries its last inputs as state";
  let description = [{
    Each channel has its own filter over the present and earlier tokens. The last kernel - 1 inputs of a call are
    its state, so that the next call continues the sequence.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weight, ONNX_Optional:$bias, ONNX_Optional:$past_state,
        ONNX_StrOr<"none">:$activation);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present_state);
}

def ONNX_MSAttentionOp : ONNX_MSOp<"Attention", 1, [Pure]> {
  let summary = "attention from hidden states and packed projection weights";
  let description = [{
    Projects hidden states by one matrix that holds the Q, K and V weights side by side, then attends. The cache is
    one tensor with K and V stacked.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weights, ONNX_Optional:$bias, ONNX_Optional:$mask_index,
        ONNX_Optional:$past, ONNX_Optional:$attention_bias, ONNX_Optional:$past_sequence_length,
        ONNX_Int:$num_heads, ONNX_IntOr<"0">:$do_rotary, ONNX_FloatOr<"-10000.0f">:$mask_filter_value,
        ONNX_IntOr<"0">:$past_present_share_buffer, OptionalAttr<DenseI64ArrayAttr>:$qkv_hidden_sizes,
        ONNX_IntOr<"0">:$rotary_embedding_dim, OptionalAttr<ONNX_Float>:$scale, ONNX_IntOr<"0">:$unidirectional);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$present);
  let hasVerifier = 1;
}

def ONNX_MSMultiHeadAttentionOp : ONNX_MSOp<"MultiHeadAttention", 1, [Pure]> {
  let summary = "attention on projected query, key and value";
  let description = [{
    Q, K and V are already projected; an optional bias is added to them first. K and V caches are separate tensors.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Optional:$bias,
        ONNX_Optional:$key_padding_mask, ONNX_Optional:$attention_bias, ONNX_Optional:$past_key,
        ONNX_Optional:$past_value, ONNX_Optional:$past_sequence_length, ONNX_Optional:$cache_indirection,
        ONNX_Int:$num_heads, ONNX_FloatOr<"-10000.0f">:$mask_filter_value, OptionalAttr<ONNX_Float>:$scale,
        ONNX_IntOr<"0">:$unidirectional);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$present_key, ONNX_Optional:$present_value,
        ONNX_Optional:$qk);
  let hasVerifier = 1;
}

def ONNX_MSGroupQueryAttentionOp : ONNX_MSOp<"GroupQueryAttention", 1, [Pure]> {
  let summary = "attention with grouped heads, fused rotary embedding and a cache";
  let description = [{
    Query heads share key and value heads in groups. New rows are rotated when `do_rotary` is set, written into the
    cache behind the `seqlens_k` rows of each sequence, and attended causally, perhaps within a local window. Q, K
    and V may come packed in `query`.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Optional:$past_key,
        ONNX_Optional:$past_value, ONNX_Value:$seqlens_k, ONNX_Value:$total_sequence_length,
        ONNX_Optional:$cos_cache, ONNX_Optional:$sin_cache, ONNX_Optional:$position_ids,
        ONNX_Optional:$attention_bias, ONNX_Optional:$head_sink, ONNX_Optional:$k_scale, ONNX_Optional:$v_scale,
        ONNX_Optional:$q_norm_weight, ONNX_Optional:$k_norm_weight, ONNX_Optional:$query_seqlens,
        ONNX_Int:$kv_num_heads, ONNX_Int:$num_heads, ONNX_IntOr<"1">:$causal, ONNX_IntOr<"0">:$do_rotary,
        OptionalAttr<ONNX_Float>:$k_norm_epsilon, ONNX_StrOr<"NONE">:$k_quant_type,
        OptionalAttr<ONNX_Int>:$kv_cache_bit_width, ONNX_IntOr<"-1">:$local_window_size,
        OptionalAttr<ONNX_Float>:$q_norm_epsilon, ONNX_FloatOr<"0.000001f">:$qk_norm_epsilon,
        ONNX_IntOr<"0">:$qk_output, ONNX_IntOr<"0">:$rotary_interleaved, OptionalAttr<ONNX_Float>:$scale,
        ONNX_IntOr<"0">:$sliding_window_cache, ONNX_IntOr<"-1">:$smooth_softmax, ONNX_FloatOr<"0.0f">:$softcap,
        ONNX_StrOr<"NONE">:$v_quant_type);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$present_key, ONNX_Optional:$present_value,
        ONNX_Optional:$output_qk);
  let hasVerifier = 1;
}

def ONNX_MSPagedAttentionOp : ONNX_MSOp<"PagedAttention", 1, [Pure]> {
  let summary = "attention on a paged cache";
  let description = [{
    The cache is a pool of blocks; a block table says which blocks belong to which sequence. Tokens of all sequences
    lie behind one another in `query`.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Value:$key_cache,
        ONNX_Optional:$value_cache, ONNX_Value:$cumulative_sequence_length, ONNX_Value:$past_seqlens,
        ONNX_Value:$block_table, ONNX_Optional:$cos_cache, ONNX_Optional:$sin_cache, ONNX_Optional:$slot_mapping,
        ONNX_Optional:$head_sink, ONNX_Optional:$q_norm_weight, ONNX_Optional:$k_norm_weight,
        ONNX_Optional:$k_scale, ONNX_Optional:$v_scale, ONNX_Optional:$attention_metadata, ONNX_Int:$kv_num_heads,
        ONNX_Int:$num_heads, ONNX_IntOr<"0">:$do_rotary, ONNX_IntOr<"1">:$is_causal,
        OptionalAttr<StrAttr>:$k_cache_dtype, ONNX_StrOr<"NONE">:$k_quant_type,
        ONNX_StrOr<"SEPARATE">:$kv_cache_layout, ONNX_IntOr<"-1">:$local_window_size,
        ONNX_FloatOr<"0.000001f">:$qk_norm_epsilon, ONNX_IntOr<"0">:$rotary_interleaved,
        OptionalAttr<ONNX_Int>:$rotary_offset, OptionalAttr<ONNX_Float>:$scale, ONNX_FloatOr<"0.0f">:$softcap,
        OptionalAttr<StrAttr>:$v_cache_dtype, OptionalAttr<ONNX_Int>:$v_head_size, ONNX_StrOr<"NONE">:$v_quant_type);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$key_cache_out, ONNX_Optional:$value_cache_out);
  let hasVerifier = 1;
}

def ONNX_MSSparseAttentionOp : ONNX_MSOp<"SparseAttention", 1, [Pure]> {
  let summary = "block-sparse attention with a cache";
  let description = [{
    Only the blocks that a compressed row format lists for a head take part in the attention.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Value:$past_key,
        ONNX_Value:$past_value, ONNX_Value:$block_row_indices, ONNX_Value:$block_col_indices,
        ONNX_Value:$total_sequence_length, ONNX_Value:$key_total_sequence_lengths, ONNX_Optional:$cos_cache,
        ONNX_Optional:$sin_cache, ONNX_Int:$kv_num_heads, ONNX_Int:$num_heads, ONNX_Int:$sparse_block_size,
        ONNX_IntOr<"0">:$do_rotary, ONNX_IntOr<"0">:$rotary_interleaved, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present_key, ONNX_Value:$present_value);
}

def ONNX_MSDecoderMaskedMultiHeadAttentionOp : ONNX_MSOp<"DecoderMaskedMultiHeadAttention", 1, [Pure]> {
  let summary = "attention of one new token per sequence on a shared buffer";
  let description = [{
    A decode step for beam search: past and present are one buffer, and `cache_indirection` says which beam a cached
    row came from.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Optional:$mask_index,
        ONNX_Optional:$attention_bias, ONNX_Optional:$past_key, ONNX_Optional:$past_value,
        ONNX_Optional:$past_sequence_length, ONNX_Optional:$beam_width, ONNX_Optional:$cache_indirection,
        ONNX_Optional:$bias, ONNX_Int:$num_heads, ONNX_FloatOr<"-10000.0f">:$mask_filter_value,
        OptionalAttr<ONNX_Int>:$output_qk, ONNX_IntOr<"0">:$past_present_share_buffer,
        OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$present_key, ONNX_Optional:$present_value,
        ONNX_Optional:$qk);
}

def ONNX_MSDecoderMaskedSelfAttentionOp : ONNX_MSOp<"DecoderMaskedSelfAttention", 1, [Pure]> {
  let summary = "self attention of one new token per sequence on a shared buffer";
  let description = [{
    The same decode step as `onnx.ms.DecoderMaskedMultiHeadAttention`, with the projection of hidden states inside.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weights, ONNX_Value:$bias, ONNX_Optional:$mask_index,
        ONNX_Value:$past, ONNX_Optional:$attention_bias, ONNX_Value:$past_sequence_length,
        ONNX_Optional:$beam_width, ONNX_Optional:$cache_indirection, ONNX_Int:$num_heads,
        ONNX_IntOr<"0">:$do_rotary, ONNX_FloatOr<"-10000.0f">:$mask_filter_value,
        ONNX_IntOr<"0">:$past_present_share_buffer, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present);
}

def ONNX_MSPackedAttentionOp : ONNX_MSOp<"PackedAttention", 1, [Pure]> {
  let summary = "attention on packed sequences from packed projection weights";
  let description = [{
    Tokens without padding lie behind one another; `cumulative_sequence_length` marks where each sequence begins.
    The projection is inside.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weights, ONNX_Value:$bias, ONNX_Value:$token_offset,
        ONNX_Value:$cumulative_sequence_length, ONNX_Optional:$attention_bias, ONNX_Int:$num_heads,
        OptionalAttr<DenseI64ArrayAttr>:$qkv_hidden_sizes, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSPackedMultiHeadAttentionOp : ONNX_MSOp<"PackedMultiHeadAttention", 1, [Pure]> {
  let summary = "attention on packed sequences";
  let description = [{
    Attention over tokens without padding, with Q, K and V already projected; `cumulative_sequence_length` marks
    where each sequence begins.
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Optional:$key, ONNX_Optional:$value, ONNX_Optional:$bias,
        ONNX_Value:$token_offset, ONNX_Value:$cumulative_sequence_length, ONNX_Optional:$attention_bias,
        ONNX_Int:$num_heads, ONNX_FloatOr<"-10000.0f">:$mask_filter_value, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSRotaryEmbeddingOp : ONNX_MSOp<"RotaryEmbedding", 1, [Pure]> {
  let summary = "rotary embedding as ONNX Runtime spells it";
  let description = [{
    As `onnx.RotaryEmbedding`, with the positions as a required operand: one per token, or the first position of the
    call.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$position_ids, ONNX_Value:$cos_cache, ONNX_Value:$sin_cache,
        OptionalAttr<ONNX_Int>:$interleaved, OptionalAttr<ONNX_Int>:$is_packed_batching,
        OptionalAttr<ONNX_Int>:$num_heads, ONNX_IntOr<"0">:$rotary_embedding_dim, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSGemmaRotaryEmbeddingOp : ONNX_MSOp<"GemmaRotaryEmbedding", 1, [Pure]> {
  let summary = "rotary embedding from the angles themselves";
  let description = [{
    Takes the angles, computes their cosine and sine, and applies them to queries and keys together with their
    rotated halves.
  }];
  let arguments = (ins ONNX_Value:$emb, ONNX_Value:$q, ONNX_Value:$q_rot, ONNX_Value:$k, ONNX_Value:$k_rot);
  let results = (outs ONNX_Value:$output1, ONNX_Value:$output2);
}

def ONNX_MSMRotaryEmbeddingOp : ONNX_MSOp<"MRotaryEmbedding", 1, [Pure]> {
  let summary = "rotary embedding with several position sections";
  let description = [{
    Every token has several positions (time, height, width); `mrope_section` says which features turn by which of
    them.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$position_ids, ONNX_Value:$cos_cache, ONNX_Value:$sin_cache,
        DenseI64ArrayAttr:$mrope_section, OptionalAttr<ONNX_Int>:$interleaved,
        OptionalAttr<ONNX_Int>:$is_packed_batching, OptionalAttr<ONNX_Int>:$mrope_layout,
        OptionalAttr<ONNX_Int>:$num_heads, ONNX_IntOr<"0">:$rotary_embedding_dim, OptionalAttr<ONNX_Float>:$scale);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSRMSNormRotaryOp : ONNX_MSOp<"RMSNormRotary", 1, [Pure]> {
  let summary = "RMS normalisation of heads, then rotary embedding";
  let description = [{
    Normalises one slice of each head by its root mean square, then turns its leading features by the angle of the
    position.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$position_ids, ONNX_Value:$cosine,
        ONNX_Value:$sine, ONNX_Optional:$prefill_numerics, ONNX_Int:$rotary_embedding_dim,
        ONNX_FloatOr<"0.000001f">:$epsilon, ONNX_IntOr<"0">:$flatten_batch, ONNX_IntOr<"0">:$input_start,
        ONNX_IntOr<"0">:$input_width, ONNX_IntOr<"0">:$output_fp16, ONNX_IntOr<"1">:$use_fp32_arithmetic);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$normalized_fp32);
}

def ONNX_MSRelativePositionBiasOp : ONNX_MSOp<"RelativePositionBias", 1, [Pure]> {
  let summary = "attention bias from bucketed relative positions";
  let description = [{
    The distance of key and query is put into one of a few buckets, logarithmic beyond half of them; a table gives
    each bucket's bias per head.
  }];
  let arguments = (ins ONNX_Value:$bias_table, ONNX_Value:$query_length, ONNX_Value:$key_length,
        ONNX_Int:$max_distance, ONNX_IntOr<"0">:$is_bidirectional);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSGatedRelativePositionBiasOp : ONNX_MSOp<"GatedRelativePositionBias", 1, [Pure]> {
  let summary = "attention bias from relative positions with a gate";
  let description = [{
    Two gates computed from the query scale a table of relative biases, per head and query row.
  }];
  let arguments = (ins ONNX_Value:$query_layer, ONNX_Value:$query_bias, ONNX_Value:$rel_pos, ONNX_Value:$weight,
        ONNX_Value:$bias, ONNX_Value:$eco_a, ONNX_Optional:$token_offset, ONNX_Int:$num_heads);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSLinearAttentionOp : ONNX_MSOp<"LinearAttention", 1, [Pure]> {
  let summary = "linear attention with a recurrent state";
  let description = [{
    ONNX Runtime's form of `onnx.LinearAttention`, on flat tensors [batch, length, heads * size].
  }];
  let arguments = (ins ONNX_Value:$query, ONNX_Value:$key, ONNX_Value:$value, ONNX_Optional:$past_state,
        ONNX_Optional:$decay, ONNX_Optional:$beta, ONNX_Int:$kv_num_heads, ONNX_Int:$q_num_heads,
        ONNX_IntOr<"64">:$chunk_size, ONNX_FloatOr<"0.0f">:$scale, ONNX_IntOr<"0">:$state_window,
        ONNX_StrOr<"gated_delta">:$update_rule);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present_state);
  let hasVerifier = 1;
}

def ONNX_MSCausalConvWithStateOp : ONNX_MSOp<"CausalConvWithState", 1, [Pure]> {
  let summary = "causal depthwise convolution that carries its last inputs as state";
  let description = [{
    ONNX Runtime's form of `onnx.CausalConvWithState`, for more axes and other layouts of the state.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weight, ONNX_Optional:$bias, ONNX_Optional:$past_state,
        ONNX_StrOr<"none">:$activation, ONNX_IntOr<"0">:$channels_last, ONNX_IntOr<"1">:$dilation,
        ONNX_IntOr<"0">:$input_channel_offset, ONNX_IntOr<"0">:$input_channels, ONNX_IntOr<"1">:$ndim,
        ONNX_IntOr<"-1">:$state_channels_last, ONNX_IntOr<"0">:$state_length,
        ONNX_IntOr<"0">:$state_update_capacity, ONNX_IntOr<"0">:$state_window);
  let results = (outs ONNX_Value:$output, ONNX_Value:$present_state, ONNX_Optional:$state_update);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_TD
