"""A console that acts on what it is told to show."""

import io


class Output(io.StringIO):
    """What the console shows; calls back when it shows a certain text."""

    def __init__(self, text=None, action=None):
        super().__init__()
        self.text = text
        self.action = action

    def write(self, text):
        super().write(text)
        if self.text is not None and self.text in text:
            self.text = None
            self.action()


def interrupt():
    raise KeyboardInterrupt
