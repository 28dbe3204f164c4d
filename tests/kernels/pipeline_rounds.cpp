// A model of the pipeline of the strict kernels whose warps have roles (cuda/kernels/sgemm_strict/pipelined.cuh):
// producers that fill stages, groups of warps that read them, and the barriers between them, whose waits know the
// parity of a round alone. Random orders of what may happen next, in which what was copied arrives late. For every tile
// and variant it says whether a group ever read a stage that does not hold its step, or added the sum of a block of k
// out of turn, or all waited for ever. PIPELINED_TILES names the tiles. With "never ask" groups do not ask whether
// a stage was read in the last round, with "no turns" they add when they have a sum, with "first turns" they know the
// parity of the first turn alone.
#include <cstdio>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "plan/strict/pipelined_tiles.h"

namespace {

bool may_ask = true, turns = true, parity_of_turns = true;

constexpr int LATE = 100, MOST_IDLE = 5000;  // times

struct Barrier {
  int left = 1, bytes = 0;  // arrivals of this round that are missing, and boxes
  unsigned round = 0;
  bool passed(unsigned parity) const { return round % 2 != parity; }
  void arrive() { --left, end_round(); }
  void box_arrived() { --bytes, end_round(); }

 private:
  void end_round() {
    if (left == 0 && bytes == 0) ++round, left = 1;
  }
};

struct Stage {
  Barrier full, empty;
  int copied = -1, box = -1;  // whose step of A and of B lies here
};

// Who has which steps: with `block` steps at a time for each of `parties`, or one.
struct Share {
  int parties, block;
  int step(int party, int count) const { return (count / block * parties + party) * block + count % block; }
};

struct Place {  // of a producer or a group in the pipeline
  Share share;
  int party;
  unsigned phase;
  int stage = party, count = 0, step = share.step(party, 0);
  void advance(int stages) {
    step = share.step(party, ++count), stage += share.parties;
    if (stage >= stages) stage -= stages, phase ^= 1;
  }
};

struct Group {
  Place at;
  bool knows_round = false, reads = false;
  int has_sum_of = -1;  // a block of k that is not added yet
};

struct Box {
  int step, stage;
  bool late;
};

class Pipeline {
 public:
  Pipeline(const fl::PipelinedTile& tile, int steps, unsigned seed)
      : tile_(tile),
        steps_(steps),
        random_(seed),
        stages_(tile.stages),
        turns_(tile.k_groups),
        copies_(tile.producers) {
    const int block = share(tile);
    for (int p = 0; p < tile.producers; ++p) producers_.push_back({{tile.producers, block}, p, 1});
    for (int g = 0; g < tile.k_groups; ++g) groups_.push_back({{{tile.k_groups, block}, g, 0}});
  }

  // Steps at a time.
  static int share(const fl::PipelinedTile& tile) { return tile.block_per_group() ? tile.block_steps() : 1; }

  // What went wrong, or nothing.
  const char* run() {
    while (!done() && !wrong_) {
      const auto who = producers_.size() + groups_.size() + copies_.size() + boxes_.size();
      one(static_cast<int>(random_() % who));
      if (++idle_ > MOST_IDLE) wrong_ = "all wait";
    }
    return wrong_;
  }

 private:
  const fl::PipelinedTile tile_;
  const int steps_;
  std::mt19937 random_;
  std::vector<Stage> stages_;
  std::vector<Barrier> turns_;  // of one warp of each group, which has the same outputs as those of the others
  std::vector<Place> producers_;
  std::vector<Group> groups_;
  std::vector<std::deque<Place>> copies_;  // of a producer; they arrive in order
  std::vector<Box> boxes_;                 // they arrive in any order
  const char* wrong_ = nullptr;
  int added_ = 0;  // blocks of k
  int idle_ = 0;   // times that nothing happened

  bool done() const {
    for (const Group& group : groups_)
      if (group.at.step < steps_ || group.has_sum_of >= 0) return false;
    return true;
  }

  void one(int who) {
    const int producers = static_cast<int>(producers_.size()), groups = static_cast<int>(groups_.size());
    if (who < producers) return fill(producers_[who], copies_[who]);
    if ((who -= producers) < groups) return groups_[who].has_sum_of < 0 ? read(groups_[who]) : add(groups_[who]);
    if ((who -= groups) < static_cast<int>(copies_.size())) return copy_arrives(copies_[who]);
    if ((who -= static_cast<int>(copies_.size())) < static_cast<int>(boxes_.size())) box_arrives(who);
  }

  void fill(Place& at, std::deque<Place>& copies) {
    if (at.step >= steps_ || !stages_[at.stage].empty.passed(at.phase)) return;
    if (tile_.tma) {
      ++stages_[at.stage].full.bytes;
      boxes_.push_back({at.step, at.stage, random_() % 4 == 0});
    }
    copies.push_back(at);
    at.advance(tile_.stages);
    idle_ = 0;
  }

  void copy_arrives(std::deque<Place>& copies) {
    if (copies.empty()) return;
    Stage& stage = stages_[copies.front().stage];
    stage.copied = copies.front().step;
    stage.full.arrive();
    copies.pop_front();
    idle_ = 0;
  }

  void box_arrives(int number) {
    const Box box = boxes_[number];
    if (box.late && idle_ < LATE && random_() % 64 != 0) return;
    stages_[box.stage].box = box.step;
    stages_[box.stage].full.box_arrived();
    boxes_.erase(boxes_.begin() + number);
    idle_ = 0;
  }

  void read(Group& group) {
    if (group.at.step >= steps_) return;
    Stage& stage = stages_[group.at.stage];
    const bool asks = may_ask && tile_.groups_change_stages();
    if (!group.knows_round && asks && !stage.empty.passed(group.at.phase ^ 1)) return;
    group.knows_round = true;
    if (!group.reads && !stage.full.passed(group.at.phase)) return;
    if (stage.copied != group.at.step || (tile_.tma && stage.box != group.at.step)) wrong_ = "reads another step";
    group.reads = !group.reads;
    idle_ = 0;
    if (group.reads) return;
    stage.empty.arrive();
    group.knows_round = false;
    const int step = group.at.step, block = group.at.share.block;
    group.at.advance(tile_.stages);
    const bool block_ends = (step + 1) % block == 0 || step + 1 == steps_;
    if (tile_.block_per_group() && block_ends) group.has_sum_of = step / block;
  }

  void add(Group& group) {
    const int block = group.has_sum_of, groups = tile_.k_groups;
    if (turns && block > 0) {
      const unsigned parity = parity_of_turns ? (block - 1) / groups % 2 : 0;
      if (!turns_[(block - 1) % groups].passed(parity)) return;
    }
    if (added_++ != block) wrong_ = "adds out of turn";
    turns_[block % groups].arrive();
    group.has_sum_of = -1;
    idle_ = 0;
  }
};

void check(const char* variant, const fl::PipelinedTile& tile) {
  // Some blocks for each group, and a short one.
  const int steps = tile.block_per_group() ? (3 * tile.k_groups + 1) * tile.block_steps() + 3 : 60;
  const char* wrong = nullptr;
  for (unsigned seed = 0; seed < 400 && !wrong; ++seed) wrong = Pipeline(tile, steps, seed).run();
  std::printf("%dx%d k%d c%d, %d stages, %s%s: %s\n", tile.BM, tile.BN, tile.k_groups, tile.cluster_k, tile.stages,
              variant, tile.block_per_group() ? " and turns" : "", wrong ? wrong : "right");
}

void check_variants(const fl::PipelinedTile& tile) {
  if (tile.level == fl::PipelinedFor::any) return;  // its barriers are others
  check("copies", tile);
  if (tile.tma_variant) check("boxes", tile.tma_tile());
  if (tile.wide_stages > 0) check("wide boxes", tile.wide_tma_tile());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string fault = count > 1 ? arguments[1] : "";
  may_ask = fault != "never ask", turns = fault != "no turns", parity_of_turns = fault != "first turns";
  for (const fl::PipelinedTile& tile : {PIPELINED_TILES}) check_variants(tile);
}
