"""Arrays of the texts that a kernel has written into its buffers."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def text_array(
    values: int, present: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], text: npt.NDArray[np.uint8], size: int
) -> pa.StringArray:
    """Return texts as an array with bytes of its own; whether they are UTF-8 is not checked.

    Parameters
    ----------
    values
        Number of texts.
    present
        For each text, 1 or 0: NULL.
    offsets
        Where each text begins, and where the last one ends.
    text, size
        The bytes of all texts, and their number.
    """
    return pa.StringArray.from_buffers(
        values,
        pa.py_buffer(offsets[: values + 1].copy()),
        pa.py_buffer(text[:size].tobytes()),
        pa.array(present[:values].view(bool)).buffers()[1],
    )
