"""The table of methods on features."""

from gar_keras.report.other_data import markdown, on_page


def record(data, **errors):
    return {
        "settings": {"data": data, "labels_per_class": 5},
        "rows": 178,
        "features": 13,
        "classes": 3,
        "largest_class": 0.399,
        "runs": [
            {"method": method, "seed": seed, "test_error": error}
            for method, found in errors.items()
            for seed, error in enumerate(found)
        ],
    }


def test_each_figure_has_its_mean_and_leads_to_its_record():
    first = record("wine", **{"stage 1": [0.02, 0.04], "gar": [0.01]})
    second = record("digits", **{"stage 1": [0.5], "vat": [0.25]})
    assert markdown([first, second]).splitlines() == [
        "| test error at equal steps, % | wine | digits |",
        "| --- | ---: | ---: |",
        "| rows, features, classes | [178, 13, 3](other_data/wine.json) | "
        "[178, 13, 3](other_data/digits.json) |",
        "| largest class | [40 %](other_data/wine.json) | "
        "[40 %](other_data/digits.json) |",
        "| labelled rows | [15](other_data/wine.json) | "
        "[15](other_data/digits.json) |",
        "| after stage 1 | [3.00 ± 1.41 (n = 2)](other_data/wine.json) | "
        "[50.00 (n = 1)](other_data/digits.json) |",
        "| GAR | [1.00 (n = 1)](other_data/wine.json) | - |",
        "| VAT | - | [25.00 (n = 1)](other_data/digits.json) |",
    ]


def test_at_equal_time_the_epochs_are_told():
    found = record("wine", **{"stage 1": [0.02], "vat": [0.25, 0.25, 0.25]})
    found["settings"]["equal"] = "time"
    for run, epochs in zip(found["runs"][1:], (30, 40, 80), strict=True):
        run["epochs"] = epochs
    heading, *_, vat = markdown([found]).splitlines()
    assert heading == "| test error at equal time, % | wine |"
    assert vat == (
        "| VAT | [25.00 ± 0.00 (n = 3), 40 epochs]"
        "(other_data/wine_equal-time.json) |"
    )


def test_nothing_is_shown_without_a_record(tmp_path):
    assert on_page((), tmp_path) == ""
