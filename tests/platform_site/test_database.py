import pytest
from platform_site.database import database_now
@pytest.mark.django_db
def test_now():
    assert database_now()
@pytest.mark.django_db(transaction=True)
def test_now2():
    assert database_now()
