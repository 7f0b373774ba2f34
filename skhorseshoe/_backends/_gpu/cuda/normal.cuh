// The normal distribution in the log scale and its tails, float64; the formulas of normal_tail.py, whose coefficients these
// are (Shepherd & Laframboise 1981), with the exponential and the logarithm of CUDA's own library.

// (1 + 2x) erfcx(x) at u = (x - 3.75) / (x + 3.75).
__device__ __forceinline__ double erfcx_polynomial(double u) {
    double y = -2.623107347133476e-09;
    y = y * u - 1.9551358868985616e-09;
    y = y * u + 3.197926671666804e-08;
    y = y * u + 1.879082322370048e-08;
    y = y * u - 2.4857126248016745e-07;
    y = y * u - 5.084465378687302e-08;
    y = y * u + 1.7419821586224816e-06;
    y = y * u - 9.792625707303523e-07;
    y = y * u - 1.1438048033346894e-05;
    y = y * u + 2.2387565714911816e-05;
    y = y * u + 5.164652974177416e-05;
    y = y * u - 0.00029015535246077655;
    y = y * u + 0.000293714378044958;
    y = y * u + 0.0017556261651970652;
    y = y * u - 0.009746579683265262;
    y = y * u + 0.02836227737211114;
    y = y * u - 0.05869339857664934;
    y = y * u + 0.09230432116428125;
    y = y * u - 0.10880393014244462;
    y = y * u + 0.08227673848999506;
    y = y * u + 0.0035854154854790257;
    y = y * u - 0.14024059858554525;
    y = y * u + 1.2375126308378275;
    return y;
}

// exp(t^2 / 2) P(N > |t|), |t| up to 1e150.
__device__ __forceinline__ double scaled_tail(double size) {
    const double x = size * 0.7071067811865476;
    return 0.5 * erfcx_polynomial((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x);
}

// P(N > |t|), held at |t| = 37.3 so that it is never zero.
__device__ __forceinline__ double upper_tail(double t) {
    const double size = fmin(fabs(t), 37.3);
    return exp(-0.5 * size * size) * scaled_tail(size);
}

// log Phi(t) and phi(t) / Phi(t).
__device__ __forceinline__ double log_cdf(double t, double* ratio) {
    const double size = fmin(fabs(t), 1e150), g = scaled_tail(size);
    if (t < 0.0) {
        *ratio = 0.3989422804014327 / g;
        return log(g) - 0.5 * size * size;
    }
    const double held = fmin(size, 37.3), e = exp(-0.5 * held * held);
    *ratio = 0.3989422804014327 * e / (1.0 - e * g);
    return log1p(-e * g);
}
