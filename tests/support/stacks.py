"""Models of given layers, for images of four numbers unless told otherwise."""

import keras


def sequential(*stack, shape=(4,), dtype=None):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *stack])


def functional(*stack):
    x = source = keras.Input((4,))
    for layer in stack:
        x = layer(x)
    return keras.Model(source, x)


@keras.saving.register_keras_serializable(package="tests")
class Subclassed(keras.Model):
    """Tells its layers whether they are in training."""

    def __init__(self, *stack, **kwargs):
        super().__init__(**kwargs)
        self.stack = list(stack)

    def call(self, x, training=None):
        for layer in self.stack:
            x = layer(x, training=training)
        return x

    def get_config(self):
        stack = [keras.saving.serialize_keras_object(s) for s in self.stack]
        return {"stack": stack, "name": self.name}

    @classmethod
    def from_config(cls, config):
        stack = config.pop("stack")
        return cls(
            *[keras.saving.deserialize_keras_object(s) for s in stack], **config
        )


class Untold(Subclassed):
    """Does not tell its layers whether they are in training."""

    def call(self, x):
        for layer in self.stack:
            x = layer(x)
        return x
