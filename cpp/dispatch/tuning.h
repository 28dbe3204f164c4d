// Corrections of the cost rules, measured on one machine (`fastlinalg tune`).
//
// The rules were fitted on one GPU and one CPU. A tuned device has a factor for some of its rows, a function of what
// the rule says, and among those rows dispatch takes the smallest product. A choice that the rules alone give to a row
// without a factor stays: tuning moves calls between rows that it has measured, and on the CPU it has measured those
// with the same bits only, so that results go on not to depend on the number of threads.
#pragma once

#include <string>
#include <vector>

#include "core/call_device.h"
#include "core/export.h"

namespace fl {

// Between the knots the logarithm of the factor is linear in that of the rule's microseconds, outside it is constant.
struct Knot {
  double us, factor;
};
class Curve {
 public:
  Curve() = default;
  explicit Curve(const std::vector<Knot>& knots);  // ascending, all positive
  bool empty() const { return log_us_.empty(); }
  double corrected(double us) const;

 private:
  std::vector<double> log_us_, log_factor_;
};

struct TunedRow {
  std::string op, kernel;
  std::vector<Knot> knots;
};
struct TunedDevice {
  Device::Kind kind;
  std::string name;  // a CUDA device is tuned if this is its tuned_name(); the CPU by any
  std::vector<TunedRow> rows;
};

// Replaces all corrections, which come from the file `source`, if from any. Throws InvalidValue for what is not in the
// table of kernels, and for knots out of order.
FL_EXPORT void set_tuning(const std::vector<TunedDevice>& devices, const std::string& source = {});
FL_EXPORT std::string tuning_source(Device device);  // of its corrections; empty where it has none
FL_EXPORT std::string tuned_name(int device);        // of a CUDA device: "NVIDIA H200", and "NVIDIA H200 as 8.0"
unsigned tuning_generation();                        // another one after each set_tuning()

using Curves = std::vector<Curve>;  // in the order of kernels<Args>()
template <class Args>
const Curves* tuned_rows(Device device);  // null where nothing is tuned; lives as long as the process

// ---------------------------------------------------------------- the file
// Where `fastlinalg tune` keeps what it measured: the line "fastlinalg-tuning FORMAT VERSION", the devices with their
// rows, and "end". Lines that begin with # are for who reads it (python/fastlinalg/cli/tune.py).
struct TuningFile {
  enum NamedBy { nobody, caller, environment };
  std::string path;  // empty: none
  NamedBy named_by = nobody;
};
// FASTLINALG_TUNE: "off" for no file, or the path of one; else tuning.txt in the folder "fastlinalg" of XDG_CACHE_HOME
// or of ~/.cache.
FL_EXPORT TuningFile tuning_file();

// Reads the file and replaces all corrections. Returns "" or one line that says why the file is not used, and then
// nothing has changed. One that nobody has named need not exist: that is "" too, and no correction.
FL_EXPORT std::string load_tuning(const TuningFile& file);

FL_EXPORT const std::string& cpu_name();  // what a CPU is called in the file

}  // namespace fl
