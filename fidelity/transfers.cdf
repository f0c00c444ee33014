# Sizes of transfers for fidelity/traffic.toml, made up: many small, few large. Bytes, share that is no larger.
500      0
2000     0.20
10000    0.50
30000    0.70
100000   0.85
500000   0.95
2000000  0.99
5000000  1
