#include "core/json.h"

#include <charconv>

#include "core/errors.h"

namespace fl {
namespace {

constexpr int deepest = 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json json = value(0);
    skip_space();
    if (at_ != text_.size()) fail();
    return json;
  }

 private:
  [[noreturn]] void fail() const { throw InvalidValue("it is not JSON at byte " + std::to_string(at_)); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }

  Json value(int depth) {
    if (depth > deepest) fail();
    skip_space();
    switch (peek()) {
      case '{': return object(depth);
      case '[': return array(depth);
      case '"': return {.type = Json::string, .text = string(), .items = {}, .fields = {}};
      case 't': return word("true", Json::boolean, 1);
      case 'f': return word("false", Json::boolean, 0);
      case 'n': return word("null", Json::null, 0);
      default: return number();
    }
  }
  Json word(std::string_view name, Json::Type type, double value) {
    if (text_.substr(at_, name.size()) != name) fail();
    at_ += name.size();
    return {.type = type, .value = value, .text = {}, .items = {}, .fields = {}};
  }
  Json number() {
    Json json{.type = Json::number, .text = {}, .items = {}, .fields = {}};
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, json.value);
    if (error != std::errc()) fail();
    at_ = std::size_t(rest - text_.data());
    return json;
  }
  std::string string() {
    expect('"');
    std::string result;
    while (peek() != '"') {
      if (at_ >= text_.size()) fail();
      if (peek() == '\\') {
        ++at_;
        if (peek() != '"' && peek() != '\\' && peek() != '/') fail();
      }
      result += text_[at_++];
    }
    ++at_;
    return result;
  }
  Json array(int depth) {
    Json json{.type = Json::array, .text = {}, .items = {}, .fields = {}};
    expect('[');
    if (take(']')) return json;
    do json.items.push_back(value(depth + 1));
    while (take(','));
    expect(']');
    return json;
  }
  Json object(int depth) {
    Json json{.type = Json::object, .text = {}, .items = {}, .fields = {}};
    expect('{');
    if (take('}')) return json;
    do {
      skip_space();
      std::string name = string();
      expect(':');
      json.fields.push_back({std::move(name), value(depth + 1)});
    } while (take(','));
    expect('}');
    return json;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const Json* Json::field(std::string_view name) const {
  for (const auto& [key, json] : fields)
    if (key == name) return &json;
  return nullptr;
}

Json parse_json(std::string_view text) { return Parser(text).whole(); }

}  // namespace fl
