"""SET CLUSTER SETTING and RESET CLUSTER SETTING."""

from __future__ import annotations

from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.store.cluster_settings import reset_setting, set_setting
from ....catalog.values.errors import SQLError
from ....kvlayer.settings import SettingError
from ...plan.needs import Need
from ...results.results import Result
from ...runtime.authorization import require
from ...runtime.services import Services
from ...syntax.statements import SetClusterSetting
from .show import check_setting


async def set_cluster_setting(
    services: Services, statement: SetClusterSetting, user: str
) -> Result:
    """Raises SQLError 42704, 22023, or 42501 where the user may not."""
    check_setting(statement.name, statement.position)
    await require(services, user, (Need(int(Privilege.MODIFYCLUSTERSETTING), SYSTEM),))
    try:
        if statement.value is None:
            await reset_setting(services.store, statement.name)
        else:
            await set_setting(services.store, statement.name, statement.value)
    except SettingError as error:
        raise SQLError("22023", f"{error}", position=statement.position) from error
    return Result(tag="SET CLUSTER SETTING")
