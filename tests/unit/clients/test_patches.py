from clients.patches import files_of

PATCH = """\
diff --git a/shop/a b.py b/shop/a b.py
index 1..2 100644
--- a/shop/a b.py\t
+++ b/shop/a b.py\t
@@ -1,2 +1,2 @@ def f():
 same
-old
+new
+--- no heading
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-it was
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/picture.bin b/picture.bin
new file mode 100644
Binary files /dev/null and b/picture.bin differ
"""


def test_a_patch_is_read_by_file() -> None:
    """A deleted file has its old name, and a renamed file its new name."""
    assert [file.path for file in files_of(PATCH)] == ["shop/a b.py", "gone.txt", "new.py", "picture.bin"]


def test_a_patch_may_be_cut_anywhere() -> None:
    """A patch that is cut anywhere can be read."""
    assert all(isinstance(files_of(PATCH[:end]), tuple) for end in range(len(PATCH)))
