
#include <sys/stat.h>
#include <sys/utsname.h>

#include <strings.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/errors.h"
#include "core/lazy.h"
#include "core/text.h"
#include "dispatch/tuning.h"

namespace fl {
namespace {

constexpr int tuning_format = 2;
constexpr off_t largest = off_t(1) << 20;  // bytes; a table has some 50 KB

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return cache;      // others are invalid, the rules say
  const char* const home = std::getenv("HOME");  // of a relative one the folder would be in the working directory
  return home && *home == '/' ? std::string(home) + "/.cache" : "";
}

std::string model_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, 10, "model name") || colon == std::string::npos) continue;
    const std::size_t name = line.find_first_not_of(' ', colon + 1);
    if (name != std::string::npos) return line.substr(name);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "CPU";
}

// "1.5:0.9": microseconds by the rule, and the factor.
Knot knot(const std::string& word) {
  Knot knot{};
  const char* const end = word.data() + word.size();
  if (const auto us = std::from_chars(word.data(), end, knot.us); us.ec == std::errc() && us.ptr != end)
    if (const auto factor = std::from_chars(us.ptr + 1, end, knot.factor);
        *us.ptr == ':' && factor.ec == std::errc() && factor.ptr == end)
      return knot;
  throw InvalidValue("'" + word + "' is no pair of numbers as 1.5:0.9");
}

TunedDevice device(const std::string& kind, const std::string& name) {
  if (kind != "cuda" && kind != "cpu") throw InvalidValue("there is no kind of device '" + kind + "'");
  return {kind == "cuda" ? Device::cuda : Device::cpu, name, {}};
}

// A line of the file: "device KIND NAME", or of the device before it "row OPERATION KERNEL US:FACTOR ...".
void read_line(const std::string& line, std::vector<TunedDevice>& found) {
  std::istringstream words(line);
  std::string what, word, name;
  words >> what;
  if (what == "device") {
    words >> word >> std::ws;
    std::getline(words, name);
    found.push_back(device(word, name));
  } else if (what == "row" && !found.empty()) {
    TunedRow& row = found.back().rows.emplace_back();
    words >> row.op >> row.kernel;
    while (words >> word) row.knots.push_back(knot(word));
  } else {
    throw InvalidValue("a line begins with '" + what + "'");
  }
}

std::vector<TunedDevice> devices(const std::string& text) {
  std::istringstream lines(text);
  std::string line, format, version;
  lines >> line >> format >> version >> std::ws;
  if (line != "fastlinalg-tuning") throw InvalidValue("it is no table of fastlinalg tune");
  if (format != std::to_string(tuning_format)) throw InvalidValue("it has another format");
  if (version != FASTLINALG_VERSION)
    throw InvalidValue("it was made by version " + version + ", this is " FASTLINALG_VERSION);
  if (!text.ends_with("\nend\n")) throw InvalidValue("its end is missing");
  std::vector<TunedDevice> found;
  while (std::getline(lines, line) && line != "end")
    if (!line.starts_with('#')) read_line(line, found);
  std::erase_if(found, [](const TunedDevice& tuned) { return tuned.kind == Device::cpu && tuned.name != cpu_name(); });
  return found;
}

std::string content(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) throw InvalidValue("it cannot be read");
  if (status.st_size > largest) throw InvalidValue("it is larger than 1 MiB");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.bad()) throw InvalidValue("it cannot be read");
  return text.str();
}

constexpr std::size_t longest_message = 400;

bool missing(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

std::vector<TunedDevice> devices(const TuningFile& file) {
  if (file.path.empty()) return {};
  if (!missing(file.path)) return devices(content(file.path));
  if (file.named_by == TuningFile::nobody) return {};
  throw InvalidValue(file.named_by == TuningFile::environment
                         ? "there is no such file; FASTLINALG_TUNE is the path of one, or off"
                         : "there is no such file");
}

}  // namespace

TuningFile tuning_file() {
  const char* const wanted = std::getenv("FASTLINALG_TUNE");
  if (wanted && *wanted) return {strcasecmp(wanted, "off") == 0 ? "" : wanted, TuningFile::environment};
  const std::string folder = cache_folder();
  return {folder.empty() ? "" : folder + "/fastlinalg/tuning.txt"};
}

std::string load_tuning(const TuningFile& file) {
  try {
    set_tuning(devices(file), file.path);
    return "";
  } catch (const std::exception& error) {  // out of memory, or a locale's: nothing here is worth a failing product
    return "tuning table " + file.path + " is not used: " + quoted(error.what(), longest_message);
  }
}

const std::string& cpu_name() {
  static constinit Lazy<std::string> name;
  return name.get(model_name);
}

}  // namespace fl
