"""The sample films: what their index says of each that ffmpeg decodes."""
import csv
import os


def rows_of(folder):
    """A dict of the index's columns for each film; None: the samples are not here, which is said."""
    index = os.path.join(folder, "index.csv")
    if not os.path.exists(index):
        print("no sample films in", folder)
        return None
    with open(index, newline="", encoding="utf-8") as f:
        return [row for row in csv.DictReader(f) if row["framemd5"]]
