#!/usr/bin/env python3
"""Gets, applies, watches and resumes over gRPC from Python: follow.py KUBECONFIG

Needs grpcio, grpcio-tools and PyYAML; the messages come from strata.proto itself, nothing is generated beforehand. It
applies a config map, reads it, watches it while it changes, hangs up, misses a change, and hears of it when it goes on
after the revision at which it stopped. Each step is one line of output.
"""

import base64
import json
import pathlib
import queue
import sys

import grpc
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "proto"))
wire, services = grpc.protos_and_services("strata/v1/strata.proto")

NAME = "example-python"
NAMESPACE = "default"
MAPS = wire.ResourceRef(group="", version="v1", resource="configmaps")
# Long enough for a busy machine; without it a call could wait for ever.
SECONDS = 30


def connect(kubeconfig):
    """A channel to the server of a kubeconfig, with its client certificate."""
    config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())

    def of(kind, name):
        return next(entry[kind] for entry in config[kind + "s"] if entry["name"] == name)

    def pem(entry, field):
        data = entry.get(field + "-data")
        return base64.b64decode(data) if data else pathlib.Path(entry[field]).read_bytes()

    context = of("context", config["current-context"])
    cluster, user = of("cluster", context["cluster"]), of("user", context["user"])
    credentials = grpc.ssl_channel_credentials(
        root_certificates=pem(cluster, "certificate-authority"),
        private_key=pem(user, "client-key"),
        certificate_chain=pem(user, "client-certificate"),
    )
    return grpc.secure_channel(cluster["server"].removeprefix("https://"), credentials)


def status_of(error):
    """The Kubernetes Status that a refusal carries in its details, or None."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            # google.rpc.Status holds one Any with a strata.v1.StatusDetail: its JSON begins at the first brace.
            return json.loads(value[value.index(b'{"') : value.rindex(b"}") + 1])
    return None


def apply(resources, colour):
    """Says which version the config map is to have, and that this program manages it."""
    wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"colour": colour}}
    return resources.Patch(
        wire.PatchRequest(
            resource=MAPS,
            namespace=NAMESPACE,
            name=NAME,
            type=wire.PATCH_TYPE_APPLY,
            patch=json.dumps(wish).encode(),
            options=wire.WriteOptions(field_manager=NAME),
        ),
        timeout=SECONDS,
    )


class Watch:
    """One watch on a stream of its own. Iterating gives (event type, object, revision)."""

    def __init__(self, resources, revision=None):
        self.said = queue.Queue()
        start = {"initial_state": True} if revision is None else {"resource_version": str(revision)}
        selector = f"metadata.name={NAME}"
        self.say(open=wire.WatchOpen(resource=MAPS, namespace=NAMESPACE, field_selector=selector, **start))
        self.stream = resources.Watch(iter(self.said.get, None), timeout=SECONDS)

    def say(self, **what):
        self.said.put(wire.WatchRequest(watch_id=1, **what))

    def __iter__(self):
        for answer in self.stream:
            kind = answer.WhichOneof("say")
            if kind == "closed":
                raise RuntimeError(json.loads(answer.closed.status or "{}").get("message", "closed"))
            if kind != "events":
                continue
            for event in answer.events.events:
                yield event.type, json.loads(event.object), event.revision
            # What was taken may be sent again as much.
            self.say(credit=wire.WatchCredit(events=len(answer.events.events)))

    def close(self):
        self.stream.cancel()
        self.said.put(None)


def follow(watch, until):
    """Tells events until the config map has a colour; gives the revision of that event."""
    words = {wire.EVENT_TYPE_ADDED: "there is", wire.EVENT_TYPE_MODIFIED: "it became"}
    for kind, config_map, revision in watch:
        if kind == wire.EVENT_TYPE_DELETED:
            print("it is gone")
            continue
        colour = config_map["data"]["colour"]
        print(words[kind], colour)
        if colour == until:
            return revision
    raise RuntimeError("the watch ended")


def main():
    with connect(sys.argv[1]) as channel:
        resources = services.ResourcesStub(channel)
        print("applied, changed:", apply(resources, "red").changed)
        print("applied again, changed:", apply(resources, "red").changed)
        request = wire.GetRequest(resource=MAPS, namespace=NAMESPACE, name=NAME)
        print("got", json.loads(resources.Get(request, timeout=SECONDS).json)["data"]["colour"])

        watch = Watch(resources)
        seen = follow(watch, "red")
        apply(resources, "green")
        seen = follow(watch, "green")
        watch.close()

        print("hung up")
        apply(resources, "blue")
        watch = Watch(resources, seen)
        follow(watch, "blue")
        watch.close()

        request = wire.DeleteRequest(resource=MAPS, namespace=NAMESPACE, name=NAME)
        print("deleted, gone:", resources.Delete(request, timeout=SECONDS).removed)
        try:
            resources.Get(wire.GetRequest(resource=MAPS, namespace=NAMESPACE, name=NAME), timeout=SECONDS)
        except grpc.RpcError as error:
            print("refused:", error.code().name, status_of(error)["reason"])


if __name__ == "__main__":
    main()
