"""`ray start` for a local stack, without the server of `ray://` clients: 44 MiB that nobody asks.

Ray starts it wherever gRPC is installed and has no option against it. Where the name is gone in a
later Ray, the server is started as before.
"""

from ray.scripts import scripts


def main() -> None:
    unwanted = ImportError("A local stack serves no Ray clients.")
    scripts.get_ray_client_dependency_error = lambda: unwanted  # type: ignore[attr-defined]
    scripts.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
