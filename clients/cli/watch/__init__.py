"""The commands that show work, such as `watch`, `list`, `board` and `costs`."""
