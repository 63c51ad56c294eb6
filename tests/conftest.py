"""What the tests leave out of the warnings that are errors."""


def pytest_configure(config):
    # Many tests train networks that know nothing yet, and lose classes.
    config.addinivalue_line(
        "filterwarnings", "ignore::gar_keras.alerts.GARWarning"
    )
