#include "dispatch/tuning_file.h"

#include <sys/stat.h>

#include <strings.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "core/errors.h"
#include "core/json.h"
#include "core/lazy.h"
#include "core/quoted.h"
#include "dispatch/tuning.h"

namespace fl {
namespace {

constexpr double format = 1;
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
  return "CPU";
}

const Json& member(const Json& json, const char* name, Json::Type type) {
  const Json* found = json.type == Json::object ? json.field(name) : nullptr;
  if (!found || found->type != type) throw InvalidValue(std::string("its '") + name + "' is missing or something else");
  return *found;
}

Knot knot(const Json& pair) {
  if (pair.type != Json::array || pair.items.size() != 2 || pair.items[0].type != Json::number ||
      pair.items[1].type != Json::number)
    throw InvalidValue("a knot is no pair of numbers");
  return {pair.items[0].value, pair.items[1].value};
}

TunedDevice device(const Json& json) {
  TunedDevice result{Device::cpu, member(json, "name", Json::string).text, {}};
  const std::string& kind = member(json, "kind", Json::string).text;
  if (kind == "cuda") result.kind = Device::cuda;
  else if (kind != "cpu") throw InvalidValue("there is no kind of device '" + kind + "'");
  for (const auto& [op, rows] : member(json, "factors", Json::object).fields)
    for (const auto& [name, knots] : rows.fields) {
      TunedRow row{op, name, {}};
      for (const Json& pair : knots.items) row.knots.push_back(knot(pair));
      result.rows.push_back(row);
    }
  return result;
}

std::vector<TunedDevice> devices(const std::string& text) {
  const Json file = parse_json(text);
  if (member(file, "format", Json::number).value != format) throw InvalidValue("it has another format");
  const std::string& version = member(file, "version", Json::string).text;
  if (version != FASTLINALG_VERSION)
    throw InvalidValue("it was made by version " + version + ", this is " FASTLINALG_VERSION);
  std::vector<TunedDevice> found;
  for (const Json& entry : member(file, "devices", Json::array).items) {
    TunedDevice tuned = device(entry);
    if (tuned.kind == Device::cuda || tuned.name == cpu_name()) found.push_back(std::move(tuned));
  }
  return found;
}

std::string content(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) throw InvalidValue("it cannot be read");
  if (status.st_size > largest) throw InvalidValue("it is larger than 1 MiB");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) throw InvalidValue("it cannot be read");
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
  return {folder.empty() ? "" : folder + "/fastlinalg/tuning.json"};
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
