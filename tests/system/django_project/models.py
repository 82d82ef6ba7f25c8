"""The models of a shop, of every kind of key, constraint and field that Django's users have."""

import uuid
from decimal import Decimal

from django.db import models
from django.db.models import CASCADE, PROTECT, SET_NULL


class Customer(models.Model):
    token = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=80, db_index=True)
    email = models.EmailField(unique=True)
    joined = models.DateTimeField(auto_now_add=True)
    tags = models.JSONField(default=dict)


class Profile(models.Model):
    customer = models.OneToOneField(Customer, CASCADE)
    bio = models.TextField(blank=True)
    born = models.DateField(null=True)


class Supplier(models.Model):
    name = models.CharField(max_length=80, unique=True)
    active = models.BooleanField(default=True)


class Category(models.Model):
    slug = models.SlugField()
    parent = models.ForeignKey("self", CASCADE, null=True, related_name="children")

    class Meta:
        unique_together = [("slug", "parent")]


class Label(models.Model):
    text = models.CharField(max_length=30)


class Product(models.Model):
    name = models.CharField(max_length=120)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    category = models.ForeignKey(Category, PROTECT)
    supplier = models.ForeignKey(Supplier, SET_NULL, null=True)
    labels = models.ManyToManyField(Label)
    facts = models.JSONField(null=True)
    weight = models.FloatField(default=0)

    class Meta:
        indexes = [models.Index(fields=["category", "price"], name="product_by_price")]
        constraints = [
            models.CheckConstraint(condition=models.Q(price__gte=0), name="price_not_negative"),
            models.UniqueConstraint(fields=["name", "category"], name="name_in_category"),
        ]


class Order(models.Model):
    customer = models.ForeignKey(Customer, CASCADE, related_name="orders")
    placed = models.DateTimeField()
    state = models.CharField(max_length=10, choices=[("new", "new"), ("sent", "sent")])
    note = models.TextField(default="")

    class Meta:
        ordering = ["placed"]


class Line(models.Model):
    order = models.ForeignKey(Order, CASCADE, related_name="lines")
    product = models.ForeignKey(Product, PROTECT)
    count = models.PositiveIntegerField(default=1)
    price = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))

    class Meta:
        unique_together = [("order", "product")]


class Shipment(models.Model):
    order = models.OneToOneField(Order, CASCADE)
    took = models.DurationField(null=True)
    sent = models.TimeField(null=True)
    seal = models.BinaryField(default=b"")


class Review(models.Model):
    product = models.ForeignKey(Product, CASCADE)
    author = models.ForeignKey(Customer, SET_NULL, null=True)
    stars = models.SmallIntegerField()
    words = models.TextField()
