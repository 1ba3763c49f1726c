"""Attributes that NumPy's, PyTorch's and JAX's dtypes, devices and tensors have; what to write."""

_OF_NUMPY = """
    alignment base byteorder char descr fields flags hasobject isalignedstruct isbuiltin isnative
    metadata names newbyteorder num str subdtype
"""
_DTYPE = {
    **{name: f"np.dtype(d.name).{name}" for name in _OF_NUMPY.split()},
    "ndim": "0: a dtype is of one number",
    "shape": "(): a dtype is of one number",
    "abbr": "d.code",
    "to_real": "d.part",
    "to_complex": "dt.result_type(d, dt.complex64)",
    "as_numpy_dtype": "np.dtype(d.name)",
    "is_compatible_with": "d == other",
    "size": "d.itemsize, in bytes",
    "nbytes": "d.itemsize, in bytes",
}
_DEVICE = {
    "platform": "d.type",
    "device_type": "d.type",
    "device_kind": "dt.devices(), which says what each is",
    "name": "str(d)",
    "id": "d.index",
    "ordinal": "d.index",
    "local_hardware_id": "d.index",
    "process_index": "0: there is one process",
    "host_id": "0: there is one process",
    "task_id": "0: there is one process",
    "client": "dt.devices()",
    "memory_stats": "dt.memory.stats(d)",
    "memory": "dt.memory.stats(d)",
    "default_memory": "dt.memory.stats(d)",
    "addressable_memories": "dt.memory.stats(d)",
    "live_buffers": "dt.memory.stats(d)",
    "synchronize": "dt.synchronize(d)",
    "get_stream_for_external_ready_events": "dt.current_stream(d)",
}
_FINFO = {
    "nmant": "-round(math.log2(f.eps)), the bits after the point",
    "machep": "round(math.log2(f.eps))",
    "negep": "round(math.log2(f.epsneg))",
    "minexp": "round(math.log2(f.smallest_normal))",
    "maxexp": "math.frexp(f.max)[1]",
    "nexp": "f.bits - 1 + round(math.log2(f.eps))",
    "iexp": "f.bits - 1 + round(math.log2(f.eps))",
    "machar": "f.eps, f.max, f.smallest_normal",
}
_IINFO = {"kind": "i.dtype.kind", "key": "i.dtype.name"}
_GENERATOR = {
    "bit_generator": "g.state: its seed, and how much of the stream has been used",
    "get_state": "g.state",
    "set_state": "a generator that is copied, or pickled: copy.deepcopy(g)",
    "clone_state": "copy.deepcopy(g)",
    "get_offset": "g.state[1]",
    "set_offset": "dt.random.default_rng(seed), and draws",
    "seed": "dt.random.default_rng()",
    "manual_seed": "dt.random.default_rng(seed)",
    "initial_seed": "g.state[0]",
    "device": "device= of each draw: a generator belongs to none",
    "jumped": "g.spawn(n)",
    "permuted": "g.permutation",
}
_DTYPES = """
    bfloat16 bool byte char complex_double complex_float double float half int long short
"""
_DEVICES = "cpu cuda hpu mps xpu"
_STORAGE = {
    **dict.fromkeys(_DTYPES.split(), "x.astype(dtype).storage()"),
    **{name: f'x.to("{name}").storage()' for name in _DEVICES.split()},
    "clone": "x.copy().storage()",
    "copy_": "s[:] = values",
    "fill_": "s[:] = value",
    "data_ptr": "x.data_ptr()",
    "element_size": "s.dtype.itemsize",
    "size": "len(s), in elements; s.nbytes",
    "to": "x.to(device).storage()",
    "type": "s.dtype",
    "get_device": "s.device",
    "is_cuda": 's.device.type == "cuda"',
    "pin_memory": "x.pin_memory()",
    "is_pinned": "x.is_pinned()",
    "resize_": "x.resize_(shape)",
    "share_memory_": "a pickle, which multiprocessing sends",
    "is_shared": "a pickle, which multiprocessing sends",
    "untyped": "s itself",
    "from_buffer": "dt.asarray(np.frombuffer(buffer, dtype)).storage()",
    "from_file": "dt.load of a .safetensors file, which is mapped",
    "filename": "dt.load of a .safetensors file, which is mapped",
    "new": "dt.empty(n).storage()",
    "byteswap": "np.asarray(x).byteswap()",
}
ATTRIBUTES = {  # class: theirs: what to write
    "DType": _DTYPE, "Device": _DEVICE, "Finfo": _FINFO, "Iinfo": _IINFO,
    "Generator": _GENERATOR, "Storage": _STORAGE,
}  # fmt: skip

_QUANTISED = """
    dequantize int_repr q_scale q_zero_point q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points qscheme
"""
_SPARSE = "crow_indices ccol_indices col_indices row_indices sparse_dim dense_dim is_coalesced"
TENSORS = {
    **dict.fromkeys(_QUANTISED.split(), "x.astype(name of blocks); see docs/adding-a-dtype.md"),
    **dict.fromkeys(_SPARSE.split(), "a sparse tensor's: x.to_sparse(), x.to_sparse_csr(), ..."),
    **dict.fromkeys(("sparse_resize_", "sparse_resize_and_clear_"), "dt.sparse_coo_tensor"),
    **{f"is_{name}": f'x.device.type == "{name}"' for name in ("xpu", "ipu", "mtia", "maia")},
    **{f"is_{name}": "False" for name in ("meta", "mkldnn", "vulkan", "xla", "nested")},
    "is_distributed": "False",
    "is_ready": "nothing: a value is there when somebody looks at it",
    "platform": "x.device.type",
    "committed": "True: a tensor stays on its device",
    "is_fully_addressable": "True: a tensor is on one device",
    "is_fully_replicated": "True: a tensor is on one device",
    "addressable_shards": "x: a tensor is on one device",
    "global_shards": "x: a tensor is on one device",
    "device_buffers": "x.storage()",
    "on_device_size_in_bytes": "x.nbytes",
    "unsafe_buffer_pointer": "x.data_ptr()",
    "const_data_ptr": "x.data_ptr()",
    "format": "x.layout, x.stride()",
    "traceback": "dt.memory.trace(True)",
    "resize_as": "dt.resize(x, y.shape)",
    "resize_as_sparse_": "y.copy()",
    "sparse_mask": "x * mask.to_sparse()",
    "to_sparse_coo": "x.to_sparse()",
    "to_sparse_bsc": "x.to_sparse_bsr(blocksize) of x.mT",
    "to_mkldnn": "x itself",
    "to_padded_tensor": "dt.nn.utils.rnn.pad_sequence",
    "unsafe_chunk": "x.split(-(-x.shape[0] // n))",
    "unsafe_split": "x.split(sizes)",
    "unsafe_split_with_sizes": "x.split(sizes)",
    "narrow_copy": "x[start : start + length].copy()",
    "nonzero_static": "dt.argwhere(x)",
    "conj_physical": "x.conj()",
    "chalf": "x.astype(dt.complex64)",
    "map2_": "dt.vectorize(f)(x, y, z)",
    "as_subclass": "x itself",
    "output_nr": "x.requires_grad",
    "grad_dtype": "x.grad.dtype",
    "name": "nothing: tensors have no names",
    "names": "nothing: axes have no names",
    "reinforce": "dt.distributions' log_prob, and backward()",
    "orgqr": "dt.linalg.qr",
    "ormqr": "dt.linalg.qr, and @",
    "geqrf": "dt.linalg.qr",
    "igamma": "scipy.special.gammainc(x, y), of arrays",
    "igammac": "scipy.special.gammaincc(x, y), of arrays",
    "sspaddmm": "x + a @ b",
    "hash_tensor": "hashlib.sha256(np.asarray(x).tobytes())",
    "index": "x[i]",
    "get": "x[i], as x.at[i].get() is written",
    "apply": "f(x), which makes a new tensor",
    "set": "x[i] = y, or dt.scatter, which makes a new tensor",
    "slice_inverse": "x[a:b] = y",
    "module_load": "x[...] = y",
    "mtia": 'x.to("mtia")',
    "ipu": 'x.to("ipu")',
}
