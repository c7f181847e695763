"""One form of an attribute's name, whoever writes it."""

import pytest

from app.language.text.names import checked_attribute, mended_attribute

JOSE = "jose\u0301.job"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("user.residence", "user.residence"),
        ("user.dog.2nd_name", "user.dog.2nd_name"),
        ("老周.job", "老周.job"),
        ("\U00020bb7田.occupation", "\U00020bb7田.occupation"),
        ("Élodie.job", "élodie.job"),
        (JOSE, "josé.job"),
        (JOSE.upper(), "josé.job"),
        ("सीमा.job", "सीमा.job"),
    ],
)
def test_name_has_the_same_form_from_the_api_and_from_a_model(given: str, name: str):
    assert checked_attribute(given) == mended_attribute(given) == name
    assert checked_attribute(name) == name


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ("老周。.job", "老周_.job"),
        ("老\u2028周.job", "老_周.job"),
        ("老\u3000周.job", "老_周.job"),
        ("老\u202e周.job", "老_周.job"),
        ("老\u0085周.job", "老_周.job"),
        ("user.home town", "user.home_town"),
        ("user", None),
        ("用户.住处", None),
        ("user..job", None),
        ("\u0301user.job", None),
        (".job", None),
        ("9.job", None),
        ("user.\x00", None),
        ("user." + "x" * 96, None),
        ("İ" * 60 + ".job", None),
        ("", None),
    ],
)
def test_what_no_name_holds_is_refused_and_mended_of_a_model(given: str, mended: str | None):
    with pytest.raises(ValueError, match="must be subject"):
        checked_attribute(given)
    assert mended_attribute(given) == mended
