"""Tailrace: a transactional SQL store whose tables have changefeeds."""
