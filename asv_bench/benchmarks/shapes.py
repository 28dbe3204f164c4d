"""Parameters, literally. New ones go to the end; asv finds old results by value."""

# M = N of the fifteen products with K = 1024.
FIFTEEN = [
    "128x128x1024", "192x192x1024", "256x256x1024", "384x384x1024", "512x512x1024",
    "768x768x1024", "1024x1024x1024", "1536x1536x1024", "2048x2048x1024", "3072x3072x1024",
    "4096x4096x1024", "6144x6144x1024", "8192x8192x1024", "12288x12288x1024", "16384x16384x1024",
]  # fmt: skip
CUBES = ["2x2x2", "8x8x8", "16x16x16", "32x32x32", "64x64x64", "96x96x96", "200x200x200", "512x512x512"]
# One dimension short: few rows, few columns, a short sum, a long one.
THIN = [
    "1x4096x4096", "4096x1x4096", "4x4096x1024", "16384x16x128", "1000x8x1000", "12x562x5524",
    "5138x871x11", "100000x33x17", "64x64x65536", "2515x5910x5",
]  # fmt: skip
# How many products, then the shape of each.
BATCHES = ["1000x8x8x8", "256x32x32x32", "64x128x128x128", "8x512x512x512"]
VECTORS = [
    "100x100", "1024x1024", "4096x4096", "16384x16", "16384x32", "16384x128", "1024x16384",
    "16384x16384", "32768x32768", "128x262144", "262144x128",
]  # fmt: skip
TRANSPOSES = [
    "100x100", "1024x1024", "2048x512", "512x2048", "4096x4096", "8192x8192", "16384x16384",
    "10007x10009", "10007x4099", "1000000x16", "16x1000000", "777x3", "2162688x2",
]  # fmt: skip
PRECISIONS = ["accurate", "strict", "reproducible"]
HOST = ["64", "256", "1024", "2048", "4096", "8192", "16384"]  # n of square products, NumPy to NumPy

# What takes minutes on a CPU, or more memory than a laptop has.
CPU_FLOPS, CPU_BYTES = 1.5e11, 3 << 30
