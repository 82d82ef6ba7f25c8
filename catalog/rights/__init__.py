"""Rights: users, roles, privileges, and who has been granted what.

What lives here: the rights of all users as one value (`rights`), kept current on every node
(`rights_watcher`), and errors that tell values only to who may read them (`key_errors`). It must
never know a statement.
"""
