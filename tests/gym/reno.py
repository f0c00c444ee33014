"""Reno: the window grows by one packet per round trip and halves at a loss."""


def connect():
    window, threshold, recovering = 10.0, float("inf"), False

    def decide(seen):
        nonlocal window, threshold, recovering
        state = seen["state"]
        if state >= 3 and not recovering:
            threshold = max(window // 2, 2.0)
            window = threshold if state == 3 else seen["cwnd"]
        recovering = state >= 3
        if state == 4 or (not recovering and window < threshold):
            window = min(window + seen["acked"], max(threshold, window))
        elif not recovering and seen["cwnd_limited"]:
            window += seen["acked"] / window
        return window

    return decide
