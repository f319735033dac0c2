"""Running what a plan lists, with records that say how far each run is."""

__all__: list[str] = []
