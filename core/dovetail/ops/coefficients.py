"""Numbers for `elementary.py`: formats, split constants, and polynomial coefficients."""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import DType, float32, float64, uint32, uint64


class FloatFormat(NamedTuple):
    """The constants that differ between float32 and float64.

    Polynomials are near-minimax fits (weighted least squares, iterated after Lawson), lowest power
    first. Coefficients are rounded one after the other, and the others refitted. Errors: float32,
    float64.
    """

    dtype: DType
    uint: DType
    mantissa: int
    bias: int
    exp_range: tuple[float, float]
    pow_limit: float  # exponents beyond it give 0, 1 or infinity
    log_low: int  # the bits of 0.668: `log` reduces to mantissas from it to its double
    log1p_low: int  # the bits of 3/4: the same for `log1p`, with an exact reduction
    log2e: tuple[float, float]
    ln2: tuple[float, float]  # the first short enough for exact products with exponents
    ln2_full: tuple[float, float]
    half_pi: tuple[float, float, float]
    third: tuple[float, float]
    # (e**r - 1 - r) / r**2, |r| <= ln(2) / 2; error 3.2e-9 / r**2, 1.5e-18
    exp: tuple[float, ...]
    # the same, more accurately; error 4.5e-10 / r, 1.5e-18
    expm1: tuple[float, ...]
    # (2**r - 1) / r, |r| <= 1/2; error 9.0e-9, 2.3e-17
    exp2: tuple[float, ...]
    # (sinh h - h) / h**3 of z = h**2, |h| <= ln(2) / 2; error 5.0e-9, 1.8e-17
    sinh: tuple[float, ...]
    # (cosh h - 1 - z/2) / z**2, as sinh; error 1.2e-9, 2.3e-18
    cosh: tuple[float, ...]
    # float32: (log(1 + f) - f) / f**2, -1/4 <= f <= 1/2; error 1.0e-9 / f; float64: (2 atanh s
    # - 2 s) / s**3 of s**2 <= 0.0401, 2.8e-19 / s**2
    log: tuple[float, ...]
    # (atanh(s) / s - 1 - z/3) / z**2 of z = s**2 <= 0.0295; error 3.0e-9, 1.1e-17
    atanh: tuple[float, ...]
    # the same of z <= 0.00595; error relative to atanh 8e-9, 5e-22
    atanh_near: tuple[float, ...]
    root_half: int  # the bits of sqrt(1/2)
    log2_4_5: tuple[float, float]  # log2(4/5), the first short enough for exact sums with exponents
    log2_4_3: tuple[float, float]  # log2(4/3)
    # (sin h - h) / h**3 of z = h**2, |h| <= 0.796, pi/4; error 4.3e-9 / z, 1.2e-19 / z
    sin: tuple[float, ...]
    # (cos h - 1 + z/2) / z**2, as sin; error 1.5e-10 / z**2, 2.2e-18
    cos: tuple[float, ...]
    # (tan h / h - 1) / z, as sin; error relative to tan 1.8e-9, 1.3e-17
    tan: tuple[float, ...]
    # (atan h / h - 1) / z of z = h**2, |h| <= 1; error relative to atan 6.6e-9, 6.2e-18
    atan: tuple[float, ...]
    # (asin h - h) / h**3 of h**2, |h| <= 1/2; error relative to asin 4.9e-9, 1.5e-17
    asin: tuple[float, ...]
    # erf(h) / h - 1 of h**2, |h| <= 0.8135 and 3/4; error 3.6e-9, 1.2e-17
    erf: tuple[float, ...]
    # erfc(x) e**(x*x) (x + k) of t, the constant in two parts, x >= 0.72, 3/4; error relative
    # 4.6e-9, 2.8e-18
    erfc: tuple[float, ...]
    erfc_pole: float
    erfc_center: float
    cbrt_min: float  # above it no product of `cbrt` loses digits to underflow
    # ((1 - e)**(-1/3) - 1) / e, |e| <= 0.1021; error 2.8e-6 / e; in float64 then one step of Newton
    cbrt: tuple[tuple[float, ...], ...]

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.dtype.bits - 1)

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa

    @property
    def shifter(self) -> float:
        """A constant: adding it rounds a float to an integer."""
        return 1.5 * 2.0**self.mantissa

    @property
    def shifter_bits(self) -> int:
        """The bits of `shifter`."""
        return ((self.bias + self.mantissa) << self.mantissa) | (1 << (self.mantissa - 1))

    @property
    def negligible(self) -> float:
        """A bound: below it x + x**2 / 2 and the like round to x within half an ulp."""
        return 2.0 ** -(self.mantissa + 2)

    @property
    def erf_limit(self) -> float:
        """The least x from which erf is 1."""
        return 4.0 if self.mantissa == 23 else 6.0

    @property
    def erfc_limit(self) -> float:
        """The least x from which erfc is 0."""
        return 10.5 if self.mantissa == 23 else 27.5

    @property
    def smallest_normal(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)


_h = float.fromhex
FORMATS = {
    float32: FloatFormat(
        float32,
        uint32,
        23,
        127,
        (-104.0, 89.0),
        2.0**32,
        0x3F2B020C,
        0x3F400000,
        log2e=(
            _h("0x1.7154760000000p+0"),
            _h("0x1.4ae0c00000000p-26"),
        ),
        ln2=(
            _h("0x1.62e4000000000p-1"),
            _h("0x1.7f7d1c0000000p-20"),
        ),
        ln2_full=(
            _h("0x1.62e4300000000p-1"),
            _h("-0x1.05c6100000000p-29"),
        ),
        half_pi=(
            _h("0x1.921fb60000000p+0"),
            _h("-0x1.777a5c0000000p-25"),
            _h("-0x1.ee59da0000000p-50"),
        ),
        third=(
            _h("0x1.5555560000000p-2"),
            _h("-0x1.5555560000000p-27"),
        ),
        exp=(
            _h("0x1.0000000000000p-1"),
            _h("0x1.55548e0000000p-3"),
            _h("0x1.5554d40000000p-5"),
            _h("0x1.123bd80000000p-7"),
            _h("0x1.6d652c0000000p-10"),
        ),
        expm1=(
            _h("0x1.0000000000000p-1"),
            _h("0x1.5555560000000p-3"),
            _h("0x1.5554f00000000p-5"),
            _h("0x1.110fda0000000p-7"),
            _h("0x1.6d43680000000p-10"),
            _h("0x1.a2a3100000000p-13"),
        ),
        exp2=(
            _h("0x1.62e43p-1"),
            _h("0x1.ebfbep-3"),
            _h("0x1.c6af9cp-5"),
            _h("0x1.3b2a42p-7"),
            _h("0x1.5ef5cep-10"),
            _h("0x1.442d56p-13"),
        ),
        sinh=(
            _h("0x1.555556p-3"),
            _h("0x1.110f88p-7"),
            _h("0x1.a36378p-13"),
        ),
        cosh=(
            _h("0x1.555556p-5"),
            _h("0x1.6c13dep-10"),
            _h("0x1.a57daap-16"),
        ),
        log=(
            _h("-0x1.fffffep-2"),
            _h("0x1.555554p-2"),
            _h("-0x1.000128p-2"),
            _h("0x1.999d68p-3"),
            _h("-0x1.54fa10p-3"),
            _h("0x1.23a456p-3"),
            _h("-0x1.04aa52p-3"),
            _h("0x1.ebb416p-4"),
            _h("-0x1.8f9830p-4"),
            _h("0x1.56298ep-5"),
        ),
        atanh=(
            _h("0x1.99999a0000000p-3"),
            _h("0x1.2492100000000p-3"),
            _h("0x1.c704080000000p-4"),
            _h("0x1.827fa80000000p-4"),
        ),
        atanh_near=(_h("0x1.99986ep-3"), _h("0x1.269d12p-3")),
        root_half=0x3F3504F3,
        log2_4_5=(_h("-0x1.49a8p-2"), _h("0x1.ed0cbap-20")),
        log2_4_3=(_h("0x1.a900p-2"), _h("-0x1.a39fbep-20")),
        sin=(
            _h("-0x1.555544p-3"),
            _h("0x1.1106bep-7"),
            _h("-0x1.9917d0p-13"),
        ),
        cos=(
            _h("0x1.55554ap-5"),
            _h("-0x1.6c0c0cp-10"),
            _h("0x1.99da9cp-16"),
        ),
        tan=(
            _h("0x1.555564p-2"),
            _h("0x1.110c8ep-3"),
            _h("0x1.bb09e0p-5"),
            _h("0x1.5ace90p-6"),
            _h("0x1.6ceb6ap-7"),
            _h("-0x1.3511e0p-12"),
            _h("0x1.2b4dcep-8"),
        ),
        atan=(
            _h("-0x1.55553ep-2"),
            _h("0x1.9991e4p-3"),
            _h("-0x1.242086p-3"),
            _h("0x1.c08c4ep-4"),
            _h("-0x1.58091ap-4"),
            _h("0x1.da29eep-5"),
            _h("-0x1.fd7d5cp-6"),
            _h("0x1.642336p-7"),
            _h("-0x1.d354fcp-10"),
        ),
        asin=(
            _h("0x1.5555c8p-3"),
            _h("0x1.330204p-4"),
            _h("0x1.747bb8p-5"),
            _h("0x1.8c3e96p-6"),
            _h("0x1.595bc8p-5"),
        ),
        erf=(
            _h("0x1.06eba8p-3"),
            _h("-0x1.812740p-2"),
            _h("0x1.ce2d5ep-4"),
            _h("-0x1.b7ff92p-6"),
            _h("0x1.54320ap-8"),
            _h("-0x1.a4deb8p-11"),
            _h("0x1.4a6c3ap-14"),
        ),
        erfc=(
            _h("0x1.bbb4b80000000p-1"),
            _h("-0x1.a80f1e0000000p-26"),
            _h("-0x1.1c65220000000p-1"),
            _h("0x1.f6437c0000000p-3"),
            _h("-0x1.b2e0960000000p-5"),
            _h("-0x1.6d1e540000000p-7"),
            _h("0x1.36980a0000000p-7"),
            _h("0x1.52402a0000000p-11"),
            _h("-0x1.c333980000000p-10"),
            _h("-0x1.3c68760000000p-13"),
            _h("0x1.d032a60000000p-13"),
        ),
        erfc_pole=2.0,
        erfc_center=0.75,
        cbrt_min=2.0**-100,
        cbrt=((_h("0x1.5553d8p-2"), _h("0x1.c9acc6p-3"), _h("0x1.65c728p-3")),),
    ),
    float64: FloatFormat(
        float64,
        uint64,
        52,
        1023,
        (-746.0, 710.0),
        2.0**65,
        0x3FE5604189374BC7,
        0x3FE8000000000000,
        log2e=(
            _h("0x1.71547652b82fep+0"),
            _h("0x1.777d0ffda0d24p-56"),
        ),
        ln2=(
            _h("0x1.62e42fefa3800p-1"),
            _h("0x1.ef35793c76730p-45"),
        ),
        ln2_full=(
            _h("0x1.62e42fefa39efp-1"),
            _h("0x1.abc9e3b39803fp-56"),
        ),
        half_pi=(
            _h("0x1.921fb54442d18p+0"),
            _h("0x1.1a62633145c07p-54"),
            _h("-0x1.f1976b7ed8fbcp-110"),
        ),
        third=(
            _h("0x1.5555555555555p-2"),
            _h("0x1.5555555555555p-56"),
        ),
        exp=(
            _h("0x1.0000000000000p-1"),
            _h("0x1.5555555555557p-3"),
            _h("0x1.5555555555557p-5"),
            _h("0x1.1111111110052p-7"),
            _h("0x1.6c16c16c1565fp-10"),
            _h("0x1.a01a01ac1d1b3p-13"),
            _h("0x1.a01a01abcae53p-16"),
            _h("0x1.71de01aff945cp-19"),
            _h("0x1.27e4cefea45a8p-22"),
            _h("0x1.af4ec3d2b744cp-26"),
            _h("0x1.1f88717896313p-29"),
        ),
        expm1=(
            _h("0x1.0000000000000p-1"),
            _h("0x1.5555555555557p-3"),
            _h("0x1.5555555555557p-5"),
            _h("0x1.1111111110052p-7"),
            _h("0x1.6c16c16c1565fp-10"),
            _h("0x1.a01a01ac1d1b3p-13"),
            _h("0x1.a01a01abcae53p-16"),
            _h("0x1.71de01aff945cp-19"),
            _h("0x1.27e4cefea45a8p-22"),
            _h("0x1.af4ec3d2b744cp-26"),
            _h("0x1.1f88717896313p-29"),
        ),
        exp2=(
            _h("0x1.62e42fefa39efp-1"),
            _h("0x1.ebfbdff82c58fp-3"),
            _h("0x1.c6b08d704a236p-5"),
            _h("0x1.3b2ab6fba4d48p-7"),
            _h("0x1.5d87fe7848d3p-10"),
            _h("0x1.430912f8c1f09p-13"),
            _h("0x1.ffcbfeda933c9p-17"),
            _h("0x1.62c020eaf205ep-20"),
            _h("0x1.b51ce113f739fp-24"),
            _h("0x1.e4d3ec0ff89eep-28"),
            _h("0x1.01c59f686483ep-31"),
            _h("0x1.be1868f3a999fp-36"),
            _h("-0x1.f6b2c77fda42fp-36"),
        ),
        sinh=(
            _h("0x1.5555555555556p-3"),
            _h("0x1.111111111070ap-7"),
            _h("0x1.a01a01a9032c6p-13"),
            _h("0x1.71de0a38ccd15p-19"),
            _h("0x1.af3f1060c6cdfp-26"),
        ),
        cosh=(
            _h("0x1.5555555555555p-5"),
            _h("0x1.6c16c16c16da1p-10"),
            _h("0x1.a01a01a1c9eb3p-16"),
            _h("0x1.27e4e96c62cd8p-22"),
            _h("0x1.1f590f6d43294p-29"),
        ),
        log=(
            _h("0x1.555555555554fp-1"),
            _h("0x1.999999999c187p-2"),
            _h("0x1.24924921e32eap-2"),
            _h("0x1.c71c7490dae96p-3"),
            _h("0x1.745c4a95c6fbap-3"),
            _h("0x1.3b35c9f506a94p-3"),
            _h("0x1.0dcaf91c32460p-3"),
            _h("0x1.1b85c355ad93bp-3"),
        ),
        atanh=(
            _h("0x1.999999999999ap-3"),
            _h("0x1.24924924922fep-3"),
            _h("0x1.c71c71c74c77ep-4"),
            _h("0x1.745d173ce26cfp-4"),
            _h("0x1.3b13a9cd30297p-4"),
            _h("0x1.1115509b8550ap-4"),
            _h("0x1.e0199392e23d6p-5"),
            _h("0x1.daa3a75d3a3b9p-5"),
        ),
        atanh_near=(
            _h("0x1.999999999999ap-3"),
            _h("0x1.24924924926c7p-3"),
            _h("0x1.c71c71c500233p-4"),
            _h("0x1.745d1d2e15ec9p-4"),
            _h("0x1.3b0c39657625cp-4"),
            _h("0x1.156926d29e680p-4"),
        ),
        root_half=0x3FE6A09E667F3BCD,
        log2_4_5=(_h("-0x1.49a784bcd0000p-2"), _h("-0x1.b8afe492bf6ffp-42")),
        log2_4_3=(_h("0x1.a8ff971810000p-2"), _h("0x1.4bc302ffa76fbp-43")),
        sin=(
            _h("-0x1.5555555555555p-3"),
            _h("0x1.1111111111089p-7"),
            _h("-0x1.a01a01a0065dfp-13"),
            _h("0x1.71de3a3f6c2eap-19"),
            _h("-0x1.ae643c5e3b926p-26"),
            _h("0x1.611415471e3bcp-33"),
            _h("-0x1.a516bbda93b45p-41"),
        ),
        cos=(
            _h("0x1.5555555555555p-5"),
            _h("-0x1.6c16c16c168ccp-10"),
            _h("0x1.a01a019f38b1dp-16"),
            _h("-0x1.27e4fa03720bap-22"),
            _h("0x1.1eeb58571ebc7p-29"),
            _h("-0x1.9073d9be8ad5bp-37"),
        ),
        tan=(
            _h("0x1.55555555554f1p-2"),
            _h("0x1.11111111183c1p-3"),
            _h("0x1.ba1ba1b461021p-5"),
            _h("0x1.664f49aa51069p-6"),
            _h("0x1.226e12263bd8fp-7"),
            _h("0x1.d6d93afaeb544p-9"),
            _h("0x1.7d5b05328aa68p-10"),
            _h("0x1.37fd6557ea833p-11"),
            _h("0x1.d24f4be905fcfp-13"),
            _h("0x1.1e6dd96162357p-13"),
            _h("-0x1.bbfe827de7350p-16"),
            _h("0x1.777ea04993401p-14"),
            _h("-0x1.78c8c5cdfa688p-15"),
            _h("0x1.5e30630022d0cp-16"),
        ),
        atan=(
            _h("-0x1.5555555555526p-2"),
            _h("0x1.99999999955b4p-3"),
            _h("-0x1.249249237f0d4p-3"),
            _h("0x1.c71c717fa9b7cp-4"),
            _h("-0x1.745d11aa5b160p-4"),
            _h("0x1.3b136658f67dbp-4"),
            _h("-0x1.110e4e8bb7689p-4"),
            _h("0x1.e1bb81b685c5fp-5"),
            _h("-0x1.ae5db90d0fbb7p-5"),
            _h("0x1.82d820c98b555p-5"),
            _h("-0x1.599c565f7ca9dp-5"),
            _h("0x1.2c1ddcdde5b50p-5"),
            _h("-0x1.e9c37c8e320f7p-6"),
            _h("0x1.67f796dc3aa9cp-6"),
            _h("-0x1.c70a4c99114d5p-7"),
            _h("0x1.d6f8a4dd97338p-8"),
            _h("-0x1.79709994411eap-9"),
            _h("0x1.b2db9d0a97f1ep-11"),
            _h("-0x1.3e3b0db0e4a7ep-13"),
            _h("0x1.ba57650510622p-17"),
        ),
        asin=(
            _h("0x1.5555555555390p-3"),
            _h("0x1.333333336e831p-4"),
            _h("0x1.6db6db42783b4p-5"),
            _h("0x1.f1c72c39cbe47p-6"),
            _h("0x1.6e89f429a8a5ap-6"),
            _h("0x1.1c6be32469773p-6"),
            _h("0x1.c6fda0ab85c11p-7"),
            _h("0x1.8ec3ed8db64a1p-7"),
            _h("0x1.abc661611cf6ep-8"),
            _h("0x1.3ffb63b4be6e2p-6"),
            _h("-0x1.09de9f0cf2d95p-6"),
            _h("0x1.0571a8bbf1c59p-5"),
        ),
        erf=(
            _h("0x1.06eba8214db69p-3"),
            _h("-0x1.812746b037a00p-2"),
            _h("0x1.ce2f21a0437e8p-4"),
            _h("-0x1.b82ce312abf94p-6"),
            _h("0x1.565bcd104186ep-8"),
            _h("-0x1.c02db37a3f3a0p-11"),
            _h("0x1.f9a2f42ef095fp-14"),
            _h("-0x1.f4cacf8ac8982p-17"),
            _h("0x1.b946ad7fea98fp-20"),
            _h("-0x1.57b1068e2f35bp-23"),
            _h("0x1.91ae9b4257157p-27"),
        ),
        erfc=(
            _h("0x1.9f8072d8a752ep-1"),
            _h("0x1.930a5a253b979p-55"),
            _h("-0x1.19291423d51a3p-1"),
            _h("0x1.4f958b4ff3900p-2"),
            _h("-0x1.58cbebd84decep-3"),
            _h("0x1.2421ab5089454p-4"),
            _h("-0x1.73966d93d753bp-6"),
            _h("0x1.fb029682eff1dp-9"),
            _h("0x1.8ae97293417c5p-11"),
            _h("-0x1.7ce7fc4de2563p-11"),
            _h("0x1.26336d93b9f87p-13"),
            _h("0x1.0b5bc4df7fc1bp-14"),
            _h("-0x1.448457e0781e6p-15"),
            _h("-0x1.12d697c2a2999p-19"),
            _h("0x1.f51f0a092535ap-18"),
            _h("-0x1.ca96e73ebda3bp-21"),
            _h("-0x1.7ec4c065baf9ep-20"),
            _h("0x1.878e5f082d6a5p-22"),
            _h("0x1.65315a52c20d9p-22"),
            _h("-0x1.c189ed109eab7p-24"),
            _h("-0x1.2134e018cc261p-23"),
            _h("-0x1.5fae25a8f1eb1p-25"),
            _h("-0x1.20ffb5a22e26dp-28"),
        ),
        erfc_pole=3.0,
        erfc_center=0.625,
        cbrt_min=2.0**-900,
        cbrt=((_h("0x1.5553d8p-2"), _h("0x1.c9acc6p-3"), _h("0x1.65c728p-3")), (1.0 / 3.0,)),
    ),
}


class LogBase(NamedTuple):
    """The constants of a logarithm to base b, beside those of `FloatFormat`."""

    octave: tuple[
        float, float
    ]  # log_b(2), the first short enough for exact products with exponents
    neper: tuple[float, float]  # log_b(e)
    # float32: log_b(1 + f) / f - neper[0], |f| <= 0.336; error relative to log 4.8e-9
    series: tuple[float, ...]


LOG_BASES = {
    float32: {
        "e": LogBase(
            FORMATS[float32].ln2,
            (1.0, 0.0),
            (
                0.0,
                _h("-0x1.000000p-1"),
                _h("0x1.555504p-2"),
                _h("-0x1.ffff3cp-3"),
                _h("0x1.99d11ap-3"),
                _h("-0x1.558eacp-3"),
                _h("0x1.1ec98cp-3"),
                _h("-0x1.f4e592p-4"),
                _h("0x1.1ea354p-3"),
                _h("-0x1.03a1e6p-3"),
            ),
        ),
        "2": LogBase(
            (1.0, 0.0),
            (_h("0x1.715476p+0"), _h("0x1.4ae0c0p-26")),
            (
                _h("0x1.4ae0c0p-26"),
                _h("-0x1.715476p-1"),
                _h("0x1.ec702cp-2"),
                _h("-0x1.71541ap-2"),
                _h("0x1.279e1ep-2"),
                _h("-0x1.ecba12p-3"),
                _h("0x1.9dd31ap-3"),
                _h("-0x1.69ac26p-3"),
                _h("0x1.9d2f02p-3"),
                _h("-0x1.755efep-3"),
            ),
        ),
        "10": LogBase(
            (_h("0x1.344p-2"), _h("0x1.3509f8p-18")),
            (_h("0x1.bcb7b2p-2"), _h("-0x1.5b235ep-27")),
            (
                _h("-0x1.5b235ep-27"),
                _h("-0x1.bcb7b2p-3"),
                _h("0x1.287a30p-3"),
                _h("-0x1.bcb6b2p-4"),
                _h("0x1.63f640p-4"),
                _h("-0x1.28b35ep-4"),
                _h("0x1.f235a8p-5"),
                _h("-0x1.b293ecp-5"),
                _h("0x1.f1e984p-5"),
                _h("-0x1.c49d72p-5"),
            ),
        ),
    },
    float64: {
        "e": LogBase(FORMATS[float64].ln2, (1.0, 0.0), ()),
        "2": LogBase((1.0, 0.0), (_h("0x1.71547652b82fep+0"), _h("0x1.777d0ffda0d24p-56")), ()),
        "10": LogBase(
            (_h("0x1.34413509f7800p-2"), _h("0x1.fef311f12b358p-46")),
            (_h("0x1.bcb7b1526e50ep-2"), _h("0x1.95355baaafad3p-57")),
            (),
        ),
    },
}

# floor(2**1216 * 2/pi)
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E0"
    "06492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F4"
    "9C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D"
    "7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)

# float32 only
DOUBLE_LOG2E = _h("0x1.715476p+1")
# 2**r on |r| <= 1/2, error relative 3.3e-9
EXP2 = (
    1.0,
    _h("0x1.62e430p-1"),
    _h("0x1.ebfbdap-3"),
    _h("0x1.c6af76p-5"),
    _h("0x1.3b2f2ep-7"),
    _h("0x1.5f0b88p-10"),
    _h("0x1.409bcap-13"),
)
# (tanh(h) - h) / h**3 of z = h**2 <= 1, error relative to tanh 4.6e-9
TANH_NEAR = (
    _h("-0x1.55553cp-2"),
    _h("0x1.110be4p-3"),
    _h("-0x1.b9623cp-5"),
    _h("0x1.6009c0p-6"),
    _h("-0x1.04606ap-7"),
    _h("0x1.2da1e0p-9"),
    _h("-0x1.77d222p-12"),
)
# log2(erfc(ERF_CENTER + d)) = -2 + d * polynomial, ERF_CENTER + d <= 4; error of erf 1.9e-10, and
# another 1.7e-8 at the center, which is rounded
ERF_CENTER = _h("0x1.a07890p-1")
LOG2_ERFC = (
    _h("-0x1.ae141ep+1"),
    _h("-0x1.2df820p+0"),
    _h("-0x1.262b26p-4"),
    _h("0x1.1cba58p-6"),
    _h("-0x1.b6e07ap-9"),
    _h("0x1.cb56a4p-12"),
    _h("-0x1.cfc13cp-16"),
)
HALF_PI_SCALED = (_h("0x1.921fb60000000p-31"), _h("-0x1.777a5c0000000p-56"))  # pi/2 / 2**31
