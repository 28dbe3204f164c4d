// Any bytes as a tuning table: it is used or refused in one line, and products go on.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fastlinalg/fastlinalg.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("table", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  // The first byte says how much of a table is right in front of the others.
  const std::string head[] = {"", "fastlinalg-tuning 2 " + std::string(fl_version()) + "\n",
                              "device cuda x\nrow sgemm "};
  std::string table;
  for (int i = 0; size && i <= *data % 3; ++i) table += head[i];
  if (size) table.append(reinterpret_cast<const char*>(data + 1), size - 1);
  table += "\nend\n";
  if (ftruncate(file, 0) != 0 || pwrite(file, table.data(), table.size(), 0) != ssize_t(table.size())) std::abort();
  const fl_status status = fl_load_tuning(path.c_str());
  const std::string message = fl_last_error();
  if (status != FL_OK && (status != FL_INVALID_VALUE || message.empty() || message.find('\n') != std::string::npos))
    std::abort();
  const float a[6] = {1, 2, 3, 4, 5, 6};
  float c[4];
  if (fl_sgemm(0, 1, 2, 2, 3, 1, a, 3, a, 3, 0, c, 2, nullptr) != FL_OK || c[0] != 14 || c[3] != 77) std::abort();
  return 0;
}
