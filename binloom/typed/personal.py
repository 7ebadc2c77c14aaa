"""Columns that look like personal data, by their names and comments."""

import re
from typing import Final

_KINDS: Final = {
    "network": r"ip|ip_?addr(ess)?|user_?agent|mac_?address",
    "email": r"e_?mail",
    "phone": r"phone|mobile|telefon|fax",
    "name": r"(full|first|last|middle|sur|given|family|maiden|display|contact|customer|user)_?name|surname",
    "address": r"address|street|postcode|postal_?code|zip(_?code)?|city",
    "birth": r"birth(day|date|_date)?|date_of_birth|dob",
    "identity": r"ssn|social_security|passport|national_id|tax_id|driver_?licen[cs]e",
    "payment": r"iban|bic|card_?(number|no|holder)|credit_?card|account_?number",
    "secret": r"password|passwd|pwd|secret|api_?key|token",
    "location": r"latitude|longitude|lat|lng|geo_?location",
    "gender": r"gender|sex",
}
_WORDS: Final = {kind: re.compile(rf"(?:^|_)(?:{pattern})s?(?:_|$)", re.IGNORECASE) for kind, pattern in _KINDS.items()}


def personal_data(name: str, comment: str | None = None) -> str | None:
    """Return which kind of personal data a column seems to have; None if it seems to have none."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").replace(" ", "_")
    for kind, pattern in _WORDS.items():
        if pattern.search(words):
            return kind
    remark = re.sub(r"\W+", "_", comment or "")
    return next((kind for kind, pattern in _WORDS.items() if kind != "network" and pattern.search(remark)), None)
