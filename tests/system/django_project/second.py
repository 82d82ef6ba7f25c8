"""The second migration, of fields, indexes and constraints of tables that have rows."""

from django.db import migrations, models


def paint(apps, editor):
    apps.get_model("shop", "Mark").objects.filter(text="red").update(text="crimson")


def fill(apps, editor):
    apps.get_model("shop", "Order").objects.filter(remark="").update(remark="none")


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddField(
            "customer", "credit", models.DecimalField(max_digits=8, decimal_places=2, default=5)
        ),
        migrations.AddField(
            "customer", "city", models.CharField(max_length=40, null=True, db_index=True)
        ),
        migrations.AddField(
            "review", "answer_to", models.ForeignKey("shop.review", models.CASCADE, null=True)
        ),
        migrations.AddField("supplier", "labels", models.ManyToManyField("shop.label")),
        migrations.AlterField("product", "name", models.CharField(max_length=200)),
        migrations.AlterField(
            "product", "weight", models.DecimalField(max_digits=12, decimal_places=3, default=0)
        ),
        migrations.AlterField("review", "stars", models.BigIntegerField(default=3)),
        migrations.AlterField("review", "words", models.TextField(null=True)),
        migrations.AlterField("profile", "born", models.DateField(default="1900-01-01")),
        migrations.RemoveField("shipment", "seal"),
        migrations.RemoveField("review", "author"),
        migrations.RenameField("order", "note", "remark"),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterUniqueTogether("line", set()),
        migrations.AddIndex(
            "order", models.Index(fields=["state", "-placed"], name="order_by_state")
        ),
        migrations.RemoveConstraint("product", "price_not_negative"),
        migrations.AddConstraint(
            "product",
            models.CheckConstraint(condition=models.Q(price__gt=0), name="price_positive"),
        ),
        migrations.AlterField("label", "text", models.CharField(max_length=30, unique=True)),
        migrations.RenameModel("label", "mark"),
        migrations.AddField("mark", "shade", models.CharField(max_length=10, default="light")),
        migrations.RunPython(paint, migrations.RunPython.noop),
    ]
