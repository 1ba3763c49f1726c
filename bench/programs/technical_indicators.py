"""Moving averages, RSI, Bollinger bands and a backtest of crossings (finance)."""

import numpy as np


def sma(x, n):
    return np.convolve(x, np.ones(n), "valid") / n


def ema(x, n):
    alpha = 2 / (n + 1)
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


def rsi(prices, n=14):
    deltas = np.diff(prices)
    up = deltas[:n][deltas[:n] >= 0].sum() / n
    down = -deltas[:n][deltas[:n] < 0].sum() / n
    out = np.zeros_like(prices)
    out[:n] = 100.0 - 100.0 / (1.0 + up / down)
    for i in range(n, len(prices)):
        delta = deltas[i - 1]
        if delta > 0:
            upval, downval = delta, 0.0
        else:
            upval, downval = 0.0, -delta
        up = (up * (n - 1) + upval) / n
        down = (down * (n - 1) + downval) / n
        out[i] = 100.0 - 100.0 / (1.0 + up / down)
    return out


def inputs():
    rng = np.random.default_rng(110)
    return (100 * np.exp(np.cumsum(rng.normal(0.0002, 0.012, 6000))),)


def run(prices):
    fast, slow = ema(prices, 12), ema(prices, 26)
    macd = fast - slow
    signal = ema(macd, 9)
    windows = np.lib.stride_tricks.sliding_window_view(prices, 20)
    middle, width = windows.mean(axis=1), 2 * windows.std(axis=1)
    outside = np.mean((prices[19:] > middle + width) | (prices[19:] < middle - width))
    position = np.where(macd > signal, 1, 0)
    returns = np.diff(prices) / prices[:-1]
    strategy = position[:-1] * returns
    equity = np.cumprod(1 + strategy)
    peak = np.maximum.accumulate(equity)
    drawdown = np.max((peak - equity) / peak)
    trades = np.count_nonzero(np.diff(position))
    return rsi(prices), macd, sma(prices, 50), outside, equity[::100], drawdown, trades


def main():
    return run(*inputs())
