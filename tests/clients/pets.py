"""An operator by kopf: it answers each Pet with a name tag in its status, and says goodbye before one goes."""

import kopf


@kopf.on.create("pets.example.com")
def born(spec, patch, **_):
    patch.status["tag"] = f"{spec['name']} the {spec.get('kind', 'unknown')}"


@kopf.on.update("pets.example.com", field="spec.name")
def renamed(new, patch, **_):
    patch.status["tag"] = f"now {new}"


@kopf.on.delete("pets.example.com")
def gone(name, **_):
    print(f"goodbye {name}", flush=True)
