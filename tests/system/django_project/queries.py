"""The ORM's usual queries, each beside its answer: run by `python queries.py` in a project."""

import datetime as dt
from decimal import Decimal

import django

django.setup()

from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum, Value, Window
from django.db.models.functions import Cast, Concat, Lower, Rank, TruncMonth
from shop.models import Category, Customer, Label, Line, Order, Product, Profile, Shipment, Supplier

noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
ada = Customer.objects.create(
    name="Ada", email="ada@x.io", tags={"vip": True, "since": 2020, "a": [1, 2]}
)
bob = Customer.objects.create(name="Bob", email="bob@x.io")
Profile.objects.create(customer=ada, bio="first", born=dt.date(1815, 12, 10))
acme = Supplier.objects.create(name="ACME")
root = Category.objects.create(slug="all")
tools = Category.objects.create(slug="tools", parent=root)
red, blue = Label.objects.bulk_create([Label(text="red"), Label(text="blue")])
products = Product.objects.bulk_create(
    [
        Product(
            name=f"p{n}",
            price=Decimal(n) + Decimal("0.50"),
            category=tools,
            supplier=acme,
            facts={"size": n, "in": {"cm": n * 2}},
        )
        for n in range(10)
    ]
)
products[0].labels.add(red, blue)
products[1].labels.set([red])
products[0].labels.remove(blue)
for n in range(4):
    order = Order.objects.create(
        customer=ada if n % 2 else bob, placed=noon + dt.timedelta(days=n * 20), state="new"
    )
    Line.objects.bulk_create(
        [Line(order=order, product=p, count=n + 1, price=p.price) for p in products[: n + 1]]
    )
order = Order.objects.first()
Shipment.objects.create(
    order=order, took=dt.timedelta(hours=3, microseconds=5), sent=dt.time(12, 30), seal=b"\x00\xff"
)


def check(name, got, wanted):
    assert got == wanted, (name, got, wanted)


shipment = Shipment.objects.get(order=order)
check(
    "types",
    (shipment.took, shipment.sent, bytes(shipment.seal)),
    (dt.timedelta(hours=3, microseconds=5), dt.time(12, 30), b"\x00\xff"),
)
check("json", list(Customer.objects.filter(tags__vip=True).values_list("name", flat=True)), ["Ada"])
check("json path", Product.objects.filter(facts__in__cm__gt=10).count(), 4)
check("json key", Product.objects.filter(facts__has_key="size").count(), 10)
check("json contains", Customer.objects.filter(tags__contains={"since": 2020}).count(), 1)
check("join", Line.objects.filter(order__customer__name="Ada").count(), 6)
check("related", [o.lines.count() for o in ada.orders.all()], [2, 4])
check(
    "select_related",
    Line.objects.select_related("order__customer", "product").order_by("id")[0].order.customer.name,
    "Bob",
)
check(
    "prefetch",
    [
        len(o.lines.all())
        for o in Order.objects.prefetch_related("lines__product__labels").order_by("id")
    ],
    [1, 2, 3, 4],
)
check(
    "annotate",
    [
        (c.name, c.n, c.total)
        for c in Customer.objects.annotate(
            n=Count("orders__lines"),
            total=Sum(F("orders__lines__count") * F("orders__lines__price")),
        ).order_by("name")
    ],
    [("Ada", 6, Decimal("36.00")), ("Bob", 4, Decimal("14.00"))],
)
check(
    "aggregate",
    Product.objects.aggregate(a=Avg("price"), m=Max("price")),
    {"a": Decimal("5.00"), "m": Decimal("9.50")},
)
check(
    "exists",
    Customer.objects.filter(
        Exists(Order.objects.filter(customer=OuterRef("pk"), lines__count__gt=3))
    ).count(),
    1,
)
latest = Order.objects.filter(customer=OuterRef("pk")).order_by("-placed").values("placed")[:1]
check(
    "subquery",
    Customer.objects.annotate(last=Subquery(latest)).order_by("name")[0].last,
    noon + dt.timedelta(days=60),
)
check(
    "window",
    [
        p.r
        for p in Product.objects.annotate(r=Window(Rank(), order_by=F("price").desc())).order_by(
            "price"
        )[:2]
    ],
    [10, 9],
)
check(
    "trunc",
    [
        r["n"]
        for r in Order.objects.annotate(m=TruncMonth("placed"))
        .values("m")
        .annotate(n=Count("id"))
        .order_by("m")
    ],
    [2, 2],
)
check("dates", len(Order.objects.dates("placed", "month")), 2)
check("datetimes", len(Order.objects.datetimes("placed", "day")), 4)
check(
    "year",
    Order.objects.filter(placed__year=2026, placed__date__gte=dt.date(2026, 3, 21)).count(),
    3,
)
check(
    "lookups",
    Customer.objects.filter(
        Q(name__icontains="AD")
        | Q(email__startswith="zz")
        | Q(name__iexact="x")
        | Q(name__regex="^B.b$")
    ).count(),
    2,
)
check(
    "case",
    Product.objects.annotate(
        k=models.Case(models.When(price__lt=5, then=Value("low")), default=Value("high"))
    )
    .filter(k="low")
    .count(),
    5,
)
check(
    "coalesce",
    list(
        Profile.objects.annotate(
            x=Concat(
                Lower("bio"),
                Value("!"),
                Cast("born", models.TextField()),
                output_field=models.TextField(),
            )
        ).values_list("x", flat=True)
    ),
    ["first!1815-12-10"],
)
check("distinct on", Line.objects.order_by("product", "-count").distinct("product").count(), 4)
check(
    "union",
    Customer.objects.filter(name="Ada")
    .values("name")
    .union(Supplier.objects.values("name"))
    .count(),
    2,
)
check("in", Product.objects.filter(pk__in=[p.pk for p in products[:3]]).count(), 3)
check("in_bulk", sorted(Product.objects.in_bulk([products[0].pk])), [products[0].pk])
check("exclude", Product.objects.exclude(labels__text="red").count(), 8)
check(
    "update F",
    Product.objects.filter(price__gt=5).update(price=F("price") + 1, weight=F("weight") * 2 + 1),
    5,
)
check("get_or_create", Supplier.objects.get_or_create(name="ACME")[1], False)
check(
    "update_or_create",
    Supplier.objects.update_or_create(name="New", defaults={"active": False})[1],
    True,
)
made = Supplier.objects.bulk_create(
    [Supplier(name="ACME", active=False), Supplier(name="Third")],
    update_conflicts=True,
    unique_fields=["name"],
    update_fields=["active"],
)
check("upsert", Supplier.objects.filter(active=False).count(), 2)
Supplier.objects.bulk_create([Supplier(name="ACME")], ignore_conflicts=True)
for p in products:
    p.weight = 2
check("bulk_update", Product.objects.bulk_update(products, ["weight"], batch_size=4), 10)
with transaction.atomic():
    check("for update", Product.objects.select_for_update().filter(price__gt=5).count(), 5)
    list(
        Product.objects.select_for_update(skip_locked=True, of=("self",)).select_related("category")
    )
    try:
        with transaction.atomic():
            Supplier.objects.create(name="ACME")
        raise SystemExit("a duplicate was taken")
    except IntegrityError:
        pass
try:
    with transaction.atomic():
        Line.objects.create(order_id=999999, product=products[0])
        seen = Line.objects.filter(order_id=999999).count()
    raise SystemExit("an orphan was committed")
except IntegrityError as error:
    check("deferred", (seen, "violates foreign key constraint" in str(error)), (1, True))
check("iterator", sum(1 for _ in Line.objects.iterator(chunk_size=3)), 10)
with transaction.atomic():
    check("iterator2", sum(1 for _ in Line.objects.iterator(chunk_size=3)), 10)
user = User.objects.create_user("eve", "eve@x.io", "secret")
user.groups.add(Group.objects.create(name="staff"))
user.user_permissions.set(Permission.objects.all()[:5])
check("auth", user.has_perm("auth.add_permission") or user.check_password("secret"), True)
s = SessionStore()
s["a"] = 1
s.save()
check("session", SessionStore(s.session_key)["a"], 1)
check(
    "raw",
    [c.name for c in Customer.objects.raw("SELECT * FROM shop_customer ORDER BY name")],
    ["Ada", "Bob"],
)
check("explain", Product.objects.filter(price__gt=3).explain() != "", True)
check("delete", Order.objects.filter(customer=bob).delete()[0], 7)
ada.delete()
check("gone", (Order.objects.count(), Line.objects.count(), Profile.objects.count()), (0, 0, 0))
with connection.cursor() as cursor:
    found = connection.introspection.get_constraints(cursor, "shop_product")
    rel = connection.introspection.get_relations(cursor, "shop_line")
    seqs = connection.introspection.get_sequences(cursor, "shop_line")
check(
    "introspection",
    (
        sorted(c["columns"] for c in found.values() if c["unique"]),
        "product_by_price" in found,
        len(rel),
        len(seqs),
    ),
    ([["id"], ["name", "category_id"]], True, 2, 1),
)
connection.check_constraints()
print("queries hold")
