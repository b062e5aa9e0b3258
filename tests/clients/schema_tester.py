"""Sends what the served OpenAPI allows, and what it does not, and fails where an answer is a server error or none comes.

Usage: schema_tester.py KUBECONFIG SECONDS DOCUMENT... (documents such as apis/apps/v1). Each takes at most SECONDS.
"""

import base64
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

# Watches and followed logs have no end, and what is created should reach a namespace that exists.
CONFIG = """
continue-on-failure = true
[parameters]
"query.watch" = "false"
"query.follow" = "false"
"path.namespace" = "default"
"""


def main() -> int:
    kubeconfig, seconds, *documents = sys.argv[1:]
    config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    server = cluster["server"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        decoded = {
            "authority.pem": [cluster["certificate-authority-data"]],
            "admin.pem": [user["client-certificate-data"], user["client-key-data"]],
        }
        for name, parts in decoded.items():
            (folder / name).write_bytes(b"\n".join(base64.b64decode(part) for part in parts))
        (folder / "schemathesis.toml").write_text(CONFIG)
        tester = pathlib.Path(sys.executable).with_name("schemathesis")
        for document in documents:
            command = [
                tester, "--config-file", folder / "schemathesis.toml", "run", f"{server}/openapi/v3/{document}",
                "--url", server, "--tls-verify", folder / "authority.pem", "--request-cert", folder / "admin.pem",
                "--checks", "not_a_server_error", "--phases", "coverage,fuzzing", "--max-examples", "5",
                "--max-time", seconds, "--seed", "1", "--no-shrink", "--suppress-health-check", "all",
                "--request-timeout", "30", "--warnings", "off",
            ]
            said = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            print(said.stdout, said.stderr, sep="\n")
            if said.returncode != 0 or not re.search(r"\d+ generated", said.stdout):
                print(f"{document}: exit code {said.returncode}")
                return 1
    print("no server error, and an answer to everything")
    return 0


if __name__ == "__main__":
    sys.exit(main())
