"""Documents as the client sees them, sync and async alike."""

from kemem import filing, folder_calls


def test_a_path_is_uploaded_under_its_name(tmp_path):
    path = tmp_path / "plan.txt"
    path.write_bytes(b"Hello.")
    call = folder_calls.upload(
        "f", path, file_name=None, on_same_name="skip", tags=["a", "b"], metadata={"x": 1}
    )

    assert (call.method, call.path, call.body) == ("POST", "/v1/folders/f/files", b"Hello.")
    assert dict(call.params) == {
        "file_name": "plan.txt", "on_same_name": "skip", "metadata": '{"x": 1}', "tags": ["a", "b"]
    }  # fmt: skip
    assert call.headers["Idempotency-Key"]


def test_both_clients_can_do_the_same():
    def verbs(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    assert verbs(filing.Folders) == verbs(filing.AsyncFolders)
