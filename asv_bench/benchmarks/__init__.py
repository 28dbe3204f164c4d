import os

os.environ["FASTLINALG_TUNE"] = "off"  # a user's table is no part of a commit
