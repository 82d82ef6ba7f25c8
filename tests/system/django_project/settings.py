"""Django's settings, for the server at SERVER_PORT."""

import os

SECRET_KEY = "of a test"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.postgres",
    "shop",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "defaultdb",
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": os.environ["SERVER_PORT"],
    }
}
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
