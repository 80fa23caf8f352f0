// The straightforward C++ that the simulator is measured against: EVT at K = 100 with every reward seen at once, a
// tournament, Welford's statistics and xoshiro256+. Prints nanoseconds per pull, and a sum that keeps the compiler honest.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

struct Random {
    uint64_t s[4] = {1, 2, 3, 4};
    static uint64_t rotated(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    double operator()() {
        const uint64_t word = s[0] + s[3], shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = rotated(s[3], 45);
        return (word >> 11) * 0x1p-53;
    }
};

int main() {
    const int arms = 100, repetitions = 200, leaves = 128;
    const long budget = 20000;
    const double bar = .7, exploration = double(budget) / arms;
    Random random;
    for (int i = 0; i < 100; i++) random();
    long sum = 0;
    const auto before = std::chrono::steady_clock::now();
    for (int repetition = 0; repetition < repetitions; repetition++) {
        std::vector<double> centre(arms), half(arms), mean(arms, 0.), scatter(arms, 0.), seen(arms, 0.);
        for (int k = 0; k < arms; k++) {
            centre[k] = .6 + .2 * random();
            half[k] = .15 + .1 * random();
        }
        const auto pull = [&](int k) {
            const double reward = centre[k] + half[k] * (2 * random() - 1);
            seen[k] += 1;
            const double ahead = reward - mean[k];
            mean[k] += ahead / seen[k];
            scatter[k] += ahead * (reward - mean[k]);
        };
        const auto score = [&](int k) {
            const double ratio = exploration / seen[k];
            return std::fabs(mean[k] - bar) / (ratio + std::sqrt(ratio) * std::sqrt(scatter[k] / seen[k]));
        };
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < arms; k++) pull(k);
        std::vector<double> best(2 * leaves, std::numeric_limits<double>::infinity());
        std::vector<int> winner(2 * leaves);
        for (int k = 0; k < arms; k++) best[leaves + k] = score(k);
        for (int i = 0; i < leaves; i++) winner[leaves + i] = i;
        const auto play = [&](int node) {
            const int child = 2 * node;
            const bool left = best[child] <= best[child + 1];
            best[node] = left ? best[child] : best[child + 1];
            winner[node] = left ? winner[child] : winner[child + 1];
        };
        for (int node = leaves - 1; node > 0; node--) play(node);
        for (long issued = 2 * arms; issued < budget; issued++) {
            const int k = winner[1];
            pull(k);
            best[leaves + k] = score(k);
            for (int node = (leaves + k) >> 1; node; node >>= 1) play(node);
            sum += k;
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    std::printf("%.2f %ld\n", seconds / (double(repetitions) * (budget - 2 * arms)) * 1e9, sum);
}
