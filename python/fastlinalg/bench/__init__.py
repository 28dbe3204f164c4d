"""``fastlinalg bench``: times of kernels and of whole calls beside those of other libraries.

Modules: ``problems`` (what is measured), ``operands`` (random data and the check before every timing), ``data``
(operands as people have them),
``peer`` and ``peers`` (other libraries), ``contenders`` (calls on the host and on a device),
``turns`` (the driver), ``timing``, ``nvml`` (clocks), ``runner`` (puts them together), ``host`` and
``host_report`` (NumPy to NumPy), ``results`` and ``records`` (rows and files), ``read`` (files back into rows),
``report``, ``plot``, ``curves`` and ``html`` (what people read), ``machine`` and ``busy``.

JSON files (``--json``) hold one object::

    schema      1
    op          "sgemm", "sgemv", "transpose", "host" or "all"
    created     UTC, ISO 8601
    commit      of the source, or null; FASTLINALG_COMMIT sets it
    version     of fastlinalg
    command     the command line
    machine     device, cpu, cores, threads, os, python, numpy, gpu, driver, runtime, peak_gflops; clocks: {"before",
                "after"}, each as in a row; busy: in words what other programs used of it, or ""
    peers       {name: version}
    rows        a list of
        op, kernel    kernel is a name of the kernel table, "dispatch", "strict" (dispatched in that precision, to
                      compare with), the name of a peer, or "copy"
        peer          true unless the kernel is ours
        shape         {"m", "n", "k"}; k is null but for sgemm
        trans         "NN", "NT", "TN" or "TT" for sgemm, "N" or "T" for sgemv, null for transpose
        batch         how many such problems one call solves
        own           true where B is A: a matrix times its own transpose, by ssyrk
        layout        "row-major"; for host "C", "F" or "strided"
        row_pads      {"a", "out"}: floats between the rows
        data          what the operands hold: "normal", or a name of ``data.SETS``
        offsets       {"a", "b", "out"}: floats from an aligned address to the first element
        samples_us    microseconds per call, one number per block of calls; by turns where there is something to compare
        median_us     the one statistic: rates and tables are of it
        gflops        at median_us; null for transpose
        gbs           1e9 bytes per second at median_us, each operand counted once
        percent_of_peak   of machine.peak_gflops at median_us; null but for sgemm
        ratios        {peer: how many times as fast as the peer}; "copy" is among them for transpose
        error         null, or {"ok": within the float32 bound, "max_units": max |C-R| / (|A||B|) in units of
                      2**-24, "rel_f": relative Frobenius norm}, against float64 over sampled rows
        method        "cuda graph", "loop" (events around plain launches), or by the host's clock "alternating blocks"
                      or "wall clock" (one call)
        clocks        {"sm_mhz", "watts", "celsius"} of a GPU, medians while this was timed, or null. Both sides of a
                      ratio by turns, each after a rest as long as the turn before it (0.25 s at most); turns whose
                      clocks were apart by more than 3 % were repeated, twice at most
        result        host only, as all that follow: "fresh", "reused" or "out"
        pause_ms      before each call
        link_us       of the same bytes from and to pinned memory, both ways at once; null without a GPU
        link_share    link_us over the median
    link        a list of {"shape", "in_us", "out_us", "both_us"}; host only
    summary     a list of {"op", "kernel", "against", "shapes", "geometric_mean", "minimum", "minimum_at", "loop"}: the
                ratios of one contender over all shapes; loop if plain launches were timed
    skipped     a list of {"op", "shape", "kernel", "reason"}

CSV files (``--csv``) hold the rows flattened, without the samples.
"""
