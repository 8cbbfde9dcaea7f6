"""What each writer's files look like, a module per writer.

Every module has ``recognise(path, listing, options)``: a `SourceFile`, `Coordinates`, or None where
the file is not of that writer. It goes by what is in the file, never by names of folders.
"""
