"""The manifests of docs/kubernetes.md against the schemas that Kubernetes publishes."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from app.cli.main import COMMANDS
from app.settings import Settings, variable
from tests.support.environments import python

PAGE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
[MANIFESTS] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
PODS = [
    (found["metadata"]["name"], found["spec"]["template"]["spec"])
    for found in yaml.safe_load_all(MANIFESTS)
    if found["kind"] in {"Deployment", "Job"}
]


def validated(manifests: Path) -> subprocess.CompletedProcess[str]:
    interpreter = python("kubernetes", "kubernetes-validate==1.37.0")
    command = [str(interpreter.with_name("kubernetes-validate")), "--strict", str(manifests)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_manifests_are_valid(tmp_path: Path) -> None:
    manifests = tmp_path / "kemem.yaml"
    manifests.write_text(MANIFESTS, encoding="utf-8")
    done = validated(manifests)
    assert done.returncode == 0, done.stdout + done.stderr

    manifests.write_text(MANIFESTS.replace("replicas: 2", "replica: 2"), encoding="utf-8")
    assert validated(manifests).returncode != 0


def test_only_the_migration_has_the_login_of_the_owner() -> None:
    for name, pod in PODS:
        [container] = pod["containers"]
        secrets = {source["secretRef"]["name"] for source in container["envFrom"]}
        assert ("kemem-migration" in secrets) is name.startswith("kemem-migrate"), name


def test_manifests_name_settings_and_commands_that_exist() -> None:
    known = {variable(field) for field in Settings.model_fields}

    assert set(re.findall(r"\b(?:MEMORY_\w+|DATABASE_URL)\b", MANIFESTS)) <= known
    assert {pod["containers"][0]["args"][0] for _, pod in PODS} <= COMMANDS.keys()
    grace = [pod["terminationGracePeriodSeconds"] for _, pod in PODS if len(pod) > 2]
    assert min(grace) > Settings.model_fields["shutdown_seconds"].default
