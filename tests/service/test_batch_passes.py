"""The share of rows that pass, with its interval."""

from random import Random

from witan.service.batch_rows import BatchRow, RowResult, infer_passes


def test_the_order_of_passed_rows_does_not_matter():
    """Rows of a batch end in any order; the result is the same to the last bit."""
    tasks = [BatchRow(number, question=f"Why {number // 3}?") for number in range(60)]
    draw = Random(1)  # noqa: S311
    results = [
        RowResult(task.number, None, "", "complete", decision=draw.choice(["passed", "failed"]))
        for task in tasks
    ]
    intervals = set()
    for _ in range(10):
        draw.shuffle(results)
        interval = infer_passes(tasks, results, 0.95, pass_mark=6).interval
        intervals.add((interval.low, interval.high))

    assert len(intervals) == 1
