// What a job of the thread pool promises those who come at the same moment: the pool without its threads.
#include "runtime/thread_pool.cpp"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace fl;

std::vector<int> slots;
void note(void*, int64_t, int slot) { slots.push_back(slot); }

// As someone who looks now.
int enter(Job& job, int most) {
  uint32_t seen = job.look();
  return job.enter(seen, most);
}

void a_claim_is_for_one() {
  Job job;
  expect(job.claim() && !job.claim(), "a job is claimed twice");
  expect(enter(job, 9) == 0, "someone enters a job that is not open");
  job.open(note, nullptr, 4, 2, false);
  expect(!job.claim(), "an open job is claimed");
  job.close();
  expect(!job.claim(), "a job that is closed and not released is claimed");
  job.release(1000);
  expect(job.claim(), "a released job cannot be claimed");
}

void no_more_enter_than_may() {
  Job job;
  job.claim();
  job.open(note, nullptr, 4, 1, false);
  const uint32_t before = job.look();
  uint32_t seen = before;
  expect(job.enter(seen, 9) == 1, "the first helper is not in slot 1");
  expect(seen == before, "what was entered is not what was seen");
  expect(enter(job, 9) == 0, "a second helper enters where one may be");
  seen = before;
  expect(job.enter(seen, 9) == 0, "a helper that has looked too early enters where one may be");
  job.allow(3);
  expect(enter(job, 1) == 0, "a helper enters beyond its own limit");
  expect(enter(job, 9) == 2 && enter(job, 9) == 3 && enter(job, 9) == 0, "not three helpers in slots of their own");
  job.leave();
  expect(enter(job, 9) == 3, "the place of a helper that has left stays empty");
  job.allow(1);
  expect(enter(job, 9) == 0 && Job::inside(job.look()) == 3, "fewer helpers are allowed, and one enters");
  for (int i = 0; i < 3; ++i) job.leave();
  job.close();
  expect(enter(job, 9) == 0, "someone enters a closed job");
}

void tasks_are_done_once() {
  Job job;
  for (int round = 0; round < 2; ++round) {
    slots.clear();
    job.claim();
    job.open(note, nullptr, 5, 1, false);
    expect(job.has_tasks(), "an open job has no tasks");
    job.work(7);
    job.work(8);
    expect(slots == std::vector<int>(5, 7) && !job.has_tasks(), "not five tasks in the slot that was given");
    job.close();
    job.release(100 + round);
    expect(job.closed_since(99 + round) && !job.closed_since(100 + round), "a job was closed at another time");
  }
}

void calls_share_the_threads() {
  Pool pool;
  set_num_threads(8);
  expect(!pool.enterable().job, "a pool without jobs has one");
  Job* const first = pool.claim();
  expect(!pool.enterable().job, "a claimed job can be entered");
  first->open(note, nullptr, 9, 7, false);
  const Pool::Entrance alone = pool.enterable();
  expect(alone.job == first && alone.most == 7, "a call alone has not all helpers");
  Job* const second = pool.claim();
  expect(second && second != first, "two calls have one place");
  second->open(note, nullptr, 9, 7, false);
  expect(pool.enterable().most == 3, "two calls on eight threads have not three helpers each");
  enter(*first, 7);
  expect(pool.enterable().job == second, "the job with fewer helpers is not entered");
  enter(*second, 7);
  expect(pool.enterable().most == 3, "helpers that are there make a call's share larger");
  for (int i = 0; i < 2; ++i) enter(*first, 7), enter(*second, 7);
  expect(!pool.enterable().job, "two calls have more helpers than threads are left");
  second->work(0);
  second->leave();
  expect(!pool.enterable().job, "a job without tasks is entered");
  first->work(0);
  second->open(note, nullptr, 1, 5, true);
  enter(*second, 9);
  expect(pool.enterable().job == second && pool.enterable().most == 5, "a service has fewer helpers than it was given");
}

void a_call_that_is_told_to_end_begins_nothing_more() {
  set_watch_interval(std::chrono::microseconds(0));
  slots.clear();
  {
    int looks = 0;
    CallWatch watch(1, [&](double) { return ++looks < 3; });
    Job job;
    job.claim();
    job.open(note, nullptr, 9, 1, false);
    job.work(Watched(&watch, 9, 2));
    expect(slots.size() == 2, "not the two tasks before the third look");
    job.work(1);
    expect(slots.size() == 2 && !job.has_tasks(), "a helper goes on with a call that has ended");
    run_tasks(5, 1, note, nullptr);
    expect(slots.size() == 2 && looks == 3, "a call that has ended begins other tasks, or asks again");
  }
  run_tasks(5, 1, note, nullptr);
  expect(slots.size() == 7, "the call after one that has ended has not five tasks");
}

void there_are_places_for_many() {
  Pool pool;
  std::vector<Job*> jobs;
  while (Job* const job = pool.claim()) jobs.push_back(job);
  expect(jobs.size() == 64, "not 64 places");
  for (int i = 0; i < 2; ++i) {  // the second time it is the one that this thread had last
    jobs[40]->release(0);
    expect(pool.claim() == jobs[40] && !pool.claim(), "a place that is free again is not found");
  }
  Pool other;
  for (int i = 0; i < 65; ++i) {
    Job* const job = other.claim();
    expect(job, "a call that has ended keeps its place");
    job->open(note, nullptr, 1, 1, false);
    job->work(0);
    other.close(*job);
  }
}

}  // namespace

int main() {
  a_claim_is_for_one();
  no_more_enter_than_may();
  tasks_are_done_once();
  calls_share_the_threads();
  there_are_places_for_many();
  a_call_that_is_told_to_end_begins_nothing_more();
  std::puts("all right");
}
