"""Work in several threads at the same time."""

from __future__ import annotations

import threading


def in_threads(work, arguments, seconds=120):
    """What ``work(argument)`` gives for each argument, each in a thread of its own; the first exception is raised."""
    answers, failures = {}, []

    def run(number, argument):
        try:
            answers[number] = work(argument)
        except BaseException as error:  # raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(arguments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), f"a thread has not ended after {seconds} s"
    return [answers[number] for number in range(len(threads))]
