// The file in which `fastlinalg tune` keeps what it measured.
#pragma once

#include <string>

#include "core/export.h"

namespace fl {

// FASTLINALG_TUNE: "off" for no file, or the path of one; else tuning.json in the folder "fastlinalg" of XDG_CACHE_HOME
// or of ~/.cache. Empty: none.
FL_EXPORT std::string tuning_path();

// Reads the file and replaces all corrections (tuning.h). Returns "" or one line that says why the file is not used,
// and then nothing has changed. A file that does not exist is "" too, and no correction.
FL_EXPORT std::string load_tuning(const std::string& path);

FL_EXPORT const std::string& cpu_name();  // what a CPU is called in the file

}  // namespace fl
