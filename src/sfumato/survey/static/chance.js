// Exact chance from the browser's cryptographic generator: whole numbers compared with whole numbers, no decimals.
// Laplace and Gaussian shapes: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020.

// A whole number from 0 to below - 1, each equally likely: random bits, drawn again where they are too large.
export function uniform(below) {
  const bits = (below - 1n).toString(2).length;
  const bytes = new Uint8Array(Math.ceil(bits / 8));
  const excess = BigInt(8 * bytes.length - bits);
  for (;;) {
    crypto.getRandomValues(bytes);
    let number = 0n;
    for (const byte of bytes) number = (number << 8n) | BigInt(byte);
    number >>= excess;
    if (number < below) return number;
  }
}

// Yes with probability upper / lower.
export function toss(upper, lower) {
  return uniform(lower) < upper;
}

// Yes with probability exp(-upper / lower), for any quotient of 0 or more [CKS20, algorithm 1].
export function tossExp(upper, lower) {
  for (; upper > lower; upper -= lower) if (!tossExp(1n, 1n)) return false;
  let k = 1n;
  while (toss(upper, lower * k)) k += 1n;
  return k % 2n === 1n;
}

// A whole number k with probability proportional to exp(-|k| s / t) [CKS20, algorithm 2].
export function laplace(t, s) {
  for (;;) {
    const u = uniform(t);
    if (!tossExp(u, t)) continue;
    let v = 0n;
    while (tossExp(1n, 1n)) v += 1n;
    const size = (u + t * v) / s;
    const negative = toss(1n, 2n);
    if (negative && size === 0n) continue; // else zero would come twice as often
    return negative ? -size : size;
  }
}

// A whole number k with probability proportional to exp(-k^2 / (2 variance)), variance = upper / lower, and a whole t
// above its root [CKS20, algorithm 3].
export function gaussian(upper, lower, t) {
  for (;;) {
    const y = laplace(t, 1n);
    const far = (y < 0n ? -y : y) * lower * t - upper;
    if (tossExp(far * far, 2n * upper * lower * t * t)) return y;
  }
}
