"""Constants that Python, the core and the CUDA sources share. This file imports nothing, since the build runs it."""

# The purposes of random numbers, one for each law that is drawn from.
LATENT_PURPOSE, COEF_PURPOSE, LAMBDA_PURPOSE, NU_PURPOSE, TAU_PURPOSE, XI_PURPOSE = range(6)
MOMENTUM_PURPOSE, ACCEPT_PURPOSE, TAU_MOVE_PURPOSE, TAU_ACCEPT_PURPOSE, EXPAND_PURPOSE = range(6, 11)
LAMBDA_MOVE_PURPOSE, HOLD_PURPOSE = 11, 13
PERTURB_PURPOSE, PROBE_PURPOSE, PROBE_ROWS_PURPOSE, LINE_PURPOSE, LINE_HOLD_PURPOSE, EXCHANGE_PURPOSE = range(16, 22)
EFFECT_PURPOSE, GROUP_SCALE_PURPOSE, GROUP_XI_PURPOSE, GROUP_LINE_PURPOSE = range(22, 26)
COLUMN_PURPOSE, FLAT_PURPOSE = 26, 27
LINE_TEST = 2**30  # added to the number of the sweep for the test of a line move
FLAT_TEST = 3 * 2**30  # added to it for the test of moves along flat directions
SECOND_TRAJECTORY = 2**31  # added to the number of the sweep, so that a second trajectory has numbers of its own

# Shares by which the diagonal of H + D is raised, one after the other, until it can be factorised. This changes the
# prior of a direction that the data do not determine.
JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)

# The laws of tau given beta, and of lambda_j given beta_j.
LEAST_B = 1e-290  # least b = beta_j^2 / (2 tau^2): e^b E1(b) grows only like -log(b), and exponents must not underflow
TAU_WIDTH = 1.0  # width of the slice, in log tau
FARTHEST = 300.0  # farthest end of the slice, in log tau: if all coefficients are exactly zero the law has no other

# Moves of the scales with all coefficients integrated out.
LAMBDA_WIDTH = 16.0  # width of the slice, in log lambda_j: it reaches from noise to signal
LARGEST_ODDS = 1e250  # largest odds of holding a column
TAU_HALF_HELD = 10.0  # lambda_j^2 tau^2 H_jj of a column that is held in half of the moves of tau
COLUMN_STEP = 2.0  # standard deviation of a step of log lambda_j that moves with its coefficient alone
LEAST_FREE = 1e-9  # least 1 - d_j P_jj with which lambda_j moves: below it, v has no correct digits

# Line moves.
LINE_PROPOSALS = 16  # number of proposals of a slice step
LINE_SPLIT, LINE_ONE, LINE_ALL = range(3)  # kinds of moves: split; local or fixed; global
LINE_HALF_HELD = 100.0  # lambda_j^2 tau^2 x_j'x_j of a column that is held in half of the split moves

# The table of the quantile function g of the horseshoe.
FINE, COARSE = 4096.0, 64.0  # intervals to a unit of v: below EDGE, and above it
# v at which intervals become coarse, and at which the table of one coefficient ends: 1e-44 of the law is beyond.
EDGE, END = 0.125, 14.0
STARTS, LEAST_LOG = 20.0, -11.0  # the table of the inverse: intervals to a unit of log x, and the log x where it begins

# Rows in an array are read by tiles, and sums over rows in X's own type are added in float64 after at most FLUSH_ROWS.
TILE_BYTES, FLUSH_ROWS = 2**18, 256  # bytes of a tile, half of a common second-level cache; a number of rows

EULER = 0.5772156649015329  # the constant of Euler and Mascheroni
ROOT_OF_PI = 1.772453850905516

# Polynomials, the highest power first: (1 + 2x) erfcx(x) in (x - 3.75) / (x + 3.75), a Chebyshev expansion to 1.3e-16
# rewritten in powers; the power series of E1 below 1, and its expansion in (b - 4) / (b + 2) above; and that of e^r,
# for |r| <= log(2) / 2 to 1e-17 but for rounding.
# fmt: off
ERFCX = (
    -2.623107347133476e-09, -1.9551358868985616e-09, 3.197926671666804e-08, 1.879082322370048e-08,
    -2.4857126248016745e-07, -5.084465378687302e-08, 1.7419821586224816e-06, -9.792625707303523e-07,
    -1.1438048033346894e-05, 2.2387565714911816e-05, 5.164652974177416e-05, -0.00029015535246077655,
    0.000293714378044958, 0.0017556261651970652, -0.009746579683265262, 0.02836227737211114, -0.05869339857664934,
    0.09230432116428125, -0.10880393014244462, 0.08227673848999506, 0.0035854154854790257, -0.14024059858554525,
    1.2375126308378275,
)
E1_NEAR = (
    -8.677337204770125e-18, 1.6537983849091297e-16, -2.9871733327421158e-15, 5.0981091545465446e-14,
    -8.193389712664089e-13, 1.2353110643708935e-11, -1.7397297489890083e-10, 2.27746439867652e-09,
    -2.755731922398589e-08, 3.0619243582206544e-07, -3.1001984126984127e-06, 2.834467120181406e-05,
    -0.0002314814814814815, 0.0016666666666666668, -0.010416666666666666, 0.05555555555555555, -0.25, 1.0,
)
E1_FAR = (
    1.0473598476601479e-08, 4.989906789127274e-08, -4.9849271023022794e-08, -8.298884504413557e-08,
    2.357845506908514e-08, 3.6743326389511316e-07, -3.3879138835855337e-07, 7.594392140287119e-07,
    -1.4843791276152463e-06, 4.838800514027977e-06, -8.736382938717849e-06, 2.6510454413261257e-05,
    -5.2190644965630525e-05, 0.00016177252736568137, -0.0003379862490006253, 0.001128955491913729,
    -0.00250785254295449, 0.010133650750139046, -0.024300313655040845, 0.1903694970313361, 0.8253825996042264,
)
EXP = (
    1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06,
    2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889, 0.008333333333333333, 0.041666666666666664,
    0.16666666666666666, 0.5, 1.0, 1.0,
)
# fmt: on


def horner(coefficients):
    """A polynomial in u as an expression, which Python and C++ read alike; a loop over coefficients is slower."""
    text = repr(coefficients[0])
    for c in coefficients[1:]:
        text = f"({text} * u {'-' if c < 0 else '+'} {abs(c)!r})"
    return text


POLYNOMIALS = "ERFCX", "E1_NEAR", "E1_FAR", "EXP"


def cpp_header():
    """These constants as the text of a C++ header; a polynomial is a function of the same name in small letters."""
    lines = ["#pragma once"]
    for name, value in globals().items():
        if not name.isupper() or name == "POLYNOMIALS":
            continue
        if name in POLYNOMIALS:
            lines.append(f"HD double {name.lower()}_polynomial(double u) {{ CONTRACT return {horner(value)}; }}")
        elif isinstance(value, tuple):
            lines.append(f"constexpr double {name}[] = {{{', '.join(map(repr, value))}}};")
        else:
            lines.append(f"constexpr {'u32' if isinstance(value, int) else 'double'} {name} = {value!r};")
    return "\n".join(lines) + "\n"
