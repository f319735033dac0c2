/*
 * Lets the MKL in torch use AVX-512 on AMD processors. MKL asks this function whether the processor
 * is from Intel. If it is not, MKL uses AVX2 only.
 *
 *     gcc -shared -fPIC -o ~/mkl_on_amd.so benchmarks/mkl_on_amd.c
 *     LD_PRELOAD=~/mkl_on_amd.so python benchmarks/torch_layers.py
 */
int mkl_serv_intel_cpu_true(void) { return 1; }
