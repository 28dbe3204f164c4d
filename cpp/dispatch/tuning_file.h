// The file in which `fastlinalg tune` keeps what it measured: the line "fastlinalg-tuning FORMAT VERSION", the devices
// with their rows, and "end". Lines that begin with # are for who reads it (python/fastlinalg/cli/tune.py).
#pragma once

#include <string>

#include "core/export.h"

namespace fl {

struct TuningFile {
  enum NamedBy { nobody, caller, environment };
  std::string path;  // empty: none
  NamedBy named_by = nobody;
};
// FASTLINALG_TUNE: "off" for no file, or the path of one; else tuning.txt in the folder "fastlinalg" of XDG_CACHE_HOME
// or of ~/.cache.
FL_EXPORT TuningFile tuning_file();

// Reads the file and replaces all corrections (tuning.h). Returns "" or one line that says why the file is not used,
// and then nothing has changed. One that nobody has named need not exist: that is "" too, and no correction.
FL_EXPORT std::string load_tuning(const TuningFile& file);

FL_EXPORT const std::string& cpu_name();  // what a CPU is called in the file

}  // namespace fl
