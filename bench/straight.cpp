// A straightforward simulator of EVT (or APT) with rewards seen at once, to compare thresher's compiled core with:
// the same tournament, statistics and instances, written by hand. Usage: straight evt|apt ARMS BUDGET REPETITIONS
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

struct Xoshiro {  // xoshiro256++, seeded through splitmix64
    uint64_t s[4];
    explicit Xoshiro(uint64_t seed) {
        for (auto& word : s) {
            uint64_t z = (seed += 0x9E3779B97F4A7C15ULL);
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
            word = z ^ (z >> 31);
        }
    }
    static uint64_t turned(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    double next() {
        const uint64_t result = turned(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = turned(s[3], 45);
        return static_cast<double>(static_cast<int64_t>(result >> 11)) * 0x1.0p-53;
    }
};

template <bool Evt>
struct Simulation {
    int arms, leaves = 1;
    double bar, exploration;
    std::vector<int64_t> seen;
    std::vector<double> mean, scatter, total, residue, best;
    std::vector<int32_t> winner;

    Simulation(int k, double b, double a) : arms(k), bar(b), exploration(a) {
        while (leaves < k) leaves *= 2;
        best.resize(2 * leaves);
        winner.resize(2 * leaves);
    }
    double score(int arm) const {
        const int64_t t = seen[arm];
        if (t < 2) return static_cast<double>(t - 2);
        const double gap = std::fabs(mean[arm] - bar), weight = static_cast<double>(t);
        if constexpr (!Evt) return std::sqrt(weight) * gap;
        const double ratio = exploration / weight;
        return gap / (ratio + std::sqrt(ratio) * std::sqrt(scatter[arm] / weight));
    }
    void match(int node) {
        int child = 2 * node;
        if (best[child + 1] < best[child]) ++child;
        best[node] = best[child];
        winner[node] = winner[child];
    }
    void rescore(int arm) {
        int node = leaves + arm;
        best[node] = score(arm);
        while (node > 1) match(node /= 2);
    }
    void observe(int arm, double x) {
        const int64_t t = ++seen[arm];
        const double ahead = x - mean[arm];
        mean[arm] += ahead / static_cast<double>(t);
        scatter[arm] += ahead * (x - mean[arm]);
        const double sum = total[arm], grown = sum + x;
        residue[arm] += std::fabs(sum) >= std::fabs(x) ? (sum - grown) + x : (x - grown) + sum;
        total[arm] = grown;
    }
    int run(int64_t budget, uint64_t seed) {
        Xoshiro random(seed);
        std::vector<double> centre(arms), low(arms), width(arms);
        for (int arm = 0; arm < arms; ++arm) centre[arm] = 0.6 + 0.2 * random.next();
        for (int arm = 0; arm < arms; ++arm) {
            const double half = 0.15 + 0.1 * random.next();
            low[arm] = centre[arm] - half;
            width[arm] = 2 * half;
        }
        seen.assign(arms, 0);
        for (auto* column : {&mean, &scatter, &total, &residue}) column->assign(arms, 0.0);
        for (int leaf = 0; leaf < leaves; ++leaf) {
            winner[leaves + leaf] = leaf;
            best[leaves + leaf] = leaf < arms ? score(leaf) : std::numeric_limits<double>::infinity();
        }
        for (int node = leaves - 1; node > 0; --node) match(node);
        for (int64_t pull = 0; pull < budget; ++pull) {
            const int arm = winner[1];
            observe(arm, low[arm] + width[arm] * random.next());
            rescore(arm);
        }
        int wrong = 0;
        for (int arm = 0; arm < arms; ++arm)
            wrong += ((total[arm] + residue[arm]) / static_cast<double>(seen[arm]) >= bar) != (centre[arm] >= bar);
        return wrong;
    }
};

template <bool Evt>
void report(int arms, int64_t budget, int repetitions) {
    Simulation<Evt> simulation(arms, 0.7, static_cast<double>(budget) / arms);
    int64_t wrong = 0;
    const auto before = std::chrono::steady_clock::now();
    for (int repetition = 0; repetition < repetitions; ++repetition) wrong += simulation.run(budget, repetition + 1);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - before;
    std::printf("%.17g %.17g\n", spent.count() / (static_cast<double>(budget) * repetitions),
                static_cast<double>(wrong) / (static_cast<double>(arms) * repetitions));
}

int main(int count, char** words) {
    if (count != 5) return 2;
    const int arms = std::atoi(words[2]), repetitions = std::atoi(words[4]);
    const int64_t budget = std::atoll(words[3]);
    std::strcmp(words[1], "evt") == 0 ? report<true>(arms, budget, repetitions) : report<false>(arms, budget, repetitions);
}
