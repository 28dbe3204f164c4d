"""Several builds of fastlinalg measured by turns with the benchmarks beside this folder, each in fresh processes.

`cases` lists what is measured, `child` measures in one process, `rounds` lets builds take turns, `significance` says
what differs, `builds` makes and unpacks wheels, `history` writes asv's result files. tools/compare and tools/asv_wheels
are its users. Nothing here imports fastlinalg, but for `child`, which gets the one it is told.
"""
